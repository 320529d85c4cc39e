"""Programs of a test: supervisors, worker processes without one, schedulers, submitters."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals
from typing import Any

import msgspec

from dtq_core.settings import Settings
from dtq_worker.child import Orders
from support.eventually import eventually

TESTS = Path(__file__).parent.parent
ENDS_WITHIN_S = 15.0


class Zygote:
    """Where programs come from; one for all tests of a folder."""

    def __init__(self, *modules: str) -> None:
        """Start it; it imports these modules before it forks."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.zygote", *modules],
            env=clean_environment(TESTS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, action: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([action, *arguments]).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


class Program:
    """A module, run as a program in a process group of its own."""

    def __init__(
        self,
        zygote: Zygote,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
    ) -> None:
        self.log = log
        self._zygote = zygote
        self._code: int | None = None
        log.touch()
        self.pid: int = zygote.ask("start", module, list(arguments), dict(environment), str(log))

    def say(self, text: str) -> None:
        """Write to its standard input."""
        self._zygote.ask("say", self.pid, text)

    def hang_up(self) -> None:
        """End its standard input, as the death of a supervisor does."""
        self._zygote.ask("hang_up", self.pid)

    def signal(self, number: Signals) -> None:
        """Signal the program alone."""
        os.kill(self.pid, number)

    def signal_all(self, number: Signals) -> None:
        """Signal it and all that it started, as a terminal does."""
        os.killpg(self.pid, number)

    def kill_all(self) -> None:
        """Kill it and all that it started, at once, as a power failure does."""
        eventually(f"the kill of {self.log.name}", self._kill)

    def _kill(self) -> bool:
        """Kill its group, which it makes itself: one that has just started may not have one yet."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, SIGKILL)
        return self.exit_code is not None

    def killed(self) -> None:
        """Wait until it was killed."""
        code = self.ended()
        assert code == -SIGKILL, f"it ended with {code}: {self.log.read_text()}"

    def ended(self, limit_s: float = ENDS_WITHIN_S) -> int:
        """Wait for its end, and return its exit code."""
        eventually(f"the end of {self.log.name}", lambda: self.exit_code is not None, limit_s)
        assert self._code is not None
        return self._code

    @property
    def exit_code(self) -> int | None:
        """Its exit code, once it has ended; negative for a signal."""
        if self._code is None:
            self._code = self._zygote.ask("poll", self.pid)
        return self._code

    def children(self) -> list[int]:
        """The process ids of what it started and still lives."""
        out = subprocess.run(
            ["ps", "-o", "pid=,stat=", "--ppid", str(self.pid)], capture_output=True, text=True
        ).stdout
        rows = [row.split() for row in out.splitlines()]
        return [int(pid) for pid, state in rows if not state.startswith("Z")]

    def group(self) -> list[int]:
        """The process ids of all that it started and that lives, whether or not it does."""
        found = subprocess.run(["pgrep", "-g", str(self.pid)], capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]


def orders(settings: Settings, worker_id: str, module: str) -> str:
    """What a supervisor would tell a worker process with the handlers of a module."""
    given = Orders(worker_id, [module], None, asdict(settings), allow_eviction=False)
    return msgspec.json.encode(given).decode() + "\n"


def environment_of(settings: Settings) -> dict[str, str]:
    """The environment that a program loads these settings from."""
    given = {name: value for name, value in asdict(settings).items() if value is not None}
    return {f"DTQ_{name.upper()}": str(value) for name, value in given.items()}


def clean_environment(*folders: Path) -> dict[str, str]:
    """This environment without any setting of dtq; modules are found in some more folders."""
    path = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DTQ_")}
    return clean | {"PYTHONPATH": os.pathsep.join(path)}


def state_of(pid: int) -> str:
    """The state of a process as ``ps`` shows it, ``T`` for a stopped one; empty: it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    return state_of(pid) in {"", "Z"}


@contextlib.contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop processes for as long as the block lasts."""
    for pid in pids:
        os.kill(pid, SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, SIGCONT)
