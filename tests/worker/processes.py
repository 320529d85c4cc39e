"""Worker processes for tests: forked children, and a supervisor with children of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from dtq_core.settings import Settings
from dtq_worker.identity import new_worker_id
from worker.handlers import JOURNAL
from worker.stage import eventually

TESTS = Path(__file__).parent.parent


class Line(NamedTuple):
    """What a handler wrote down."""

    event: str
    task_id: str
    attempt: int
    pid: int
    at_s: float


class Journal:
    """What the handlers of some processes wrote down."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, event: str | None = None, task_id: str | None = None) -> list[Line]:
        if not self.path.exists():
            return []
        rows = (text.split() for text in self.path.read_text().splitlines())
        found = [Line(kind, of, int(n), int(pid), float(at)) for kind, of, n, pid, at in rows]
        return [
            line
            for line in found
            if event in {None, line.event} and task_id in {None, line.task_id}
        ]

    async def wait_for(self, event: str, count: int = 1, task_id: str | None = None) -> list[Line]:
        """Wait until something was written down that often."""

        def enough() -> list[Line] | None:
            found = self.lines(event, task_id)
            return found if len(found) >= count else None

        return await eventually(f"{count} times {event}", enough) or []


class Zygote:
    """Where forked children come from; one for all tests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "worker.zygote"],
            env=clean_environment(TESTS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, action: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([action, arguments]).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


class Forked:
    """A process that the zygote forked."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self._zygote = zygote
        self._code: int | None = None
        self.pid = pid

    @property
    def exit_code(self) -> int | None:
        if self._code is None:
            self._code = self._zygote.ask("poll", self.pid)
        return self._code

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    async def ended(self, limit_s: float = 15.0) -> int:
        """Wait for its end, and return its exit code."""
        await eventually("the end of a process", lambda: self.exit_code is not None, limit_s)
        assert self.exit_code is not None
        return self.exit_code


class Child(Forked):
    """A worker process as a supervisor would start it."""

    def __init__(self, zygote: Zygote, settings: Settings, journal: Journal, log: Path) -> None:
        self.worker_id = new_worker_id()
        orders = {
            "worker_id": self.worker_id,
            "modules": ["worker.handlers"],
            "queues": None,
            "settings": asdict(settings),
            "allow_eviction": False,
        }
        env = {JOURNAL: str(journal.path)}
        super().__init__(zygote, zygote.ask("spawn", orders, env, str(log)))

    def hurry(self) -> None:
        """Do what a supervisor does that is told twice to stop."""
        self._zygote.ask("hurry", self.pid)

    def hang_up(self) -> None:
        """Do what the death of its supervisor does."""
        self._zygote.ask("hang_up", self.pid)

    def destroy(self) -> None:
        if self.exit_code is None:
            self.signal(signal.SIGKILL)


class Crew(Forked):
    """A supervisor with its children, in a process group of its own."""

    def __init__(
        self,
        zygote: Zygote,
        settings: Settings,
        journal: Journal,
        log: Path,
        *modules: str,
        path: Path = TESTS,
    ) -> None:
        given = {name: value for name, value in asdict(settings).items() if value is not None}
        env = {f"DTQ_{name.upper()}": str(value) for name, value in given.items()}
        env |= clean_environment(TESTS, path) | {JOURNAL: str(journal.path)}
        self.log = log
        log.touch()
        super().__init__(
            zygote, zygote.ask("supervise", modules or ["worker.handlers"], env, str(log))
        )

    def signal_all(self, number: signal.Signals) -> None:
        """Signal supervisor and children, as a terminal does."""
        os.killpg(self.pid, number)

    def children(self) -> list[int]:
        """The process ids of the children that live."""
        out = subprocess.run(
            ["ps", "-o", "pid=,stat=", "--ppid", str(self.pid)], capture_output=True, text=True
        ).stdout
        rows = [row.split() for row in out.splitlines()]
        return [int(pid) for pid, state in rows if not state.startswith("Z")]

    def lines(self) -> list[str]:
        """Its log."""
        return self.log.read_text("utf-8", "replace").splitlines()

    def destroy(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def clean_environment(*folders: Path) -> dict[str, str]:
    """This environment without any setting of dtq; modules are found in some more folders."""
    path = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DTQ_")}
    return clean | {"PYTHONPATH": os.pathsep.join(path)}


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


@contextlib.contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop processes for as long as the block lasts."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
