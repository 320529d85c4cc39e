"""The programs of a scene: supervisors, worker processes without one, schedulers, submitters."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from crash.handlers import JOURNAL
from dtq_core.settings import Settings
from dtq_worker.child import Orders
from dtq_worker.identity import new_worker_id
from support.eventually import eventually

TESTS = Path(__file__).parent.parent


class Zygote:
    """Where programs come from; one for all tests."""

    def __init__(self) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DTQ_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "crash.zygote"],
            env={**clean, "PYTHONPATH": str(TESTS)},
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
        self._process.communicate()


class Program:
    """A module, run as a program in a process group of its own."""

    def __init__(
        self,
        zygote: Zygote,
        module: str,
        arguments: Sequence[str],
        environment: dict[str, str],
        log: Path,
    ) -> None:
        self.log = log
        self._zygote = zygote
        self._code: int | None = None
        self.pid: int = zygote.ask("start", module, list(arguments), environment, str(log))

    def say(self, text: str) -> None:
        """Write to its standard input."""
        self._zygote.ask("say", self.pid, text)

    def kill_all(self) -> None:
        """Kill it and all that it started, at once, as a power failure does."""
        eventually(f"the kill of {self.log.name}", self._kill)

    def _kill(self) -> bool:
        """Kill its group, which it makes itself: one that has just started may not have one yet."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._poll() is not None

    def killed(self) -> None:
        """Wait until it was killed."""
        code = self.ended()
        assert code == -signal.SIGKILL, f"it ended with {code}: {self.log.read_text()}"

    def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        eventually(f"the end of {self.log.name}", lambda: self._poll() is not None)
        assert self._code is not None
        return self._code

    def _poll(self) -> int | None:
        if self._code is None:
            self._code = self._zygote.ask("poll", self.pid)
        return self._code


def lone_orders(settings: Settings) -> str:
    """What a supervisor would tell a worker process."""
    given = asdict(settings)
    orders = Orders(new_worker_id(), ["crash.handlers"], None, given, allow_eviction=False)
    return msgspec.json.encode(orders).decode() + "\n"


def environment_of(settings: Settings, journal: Path) -> dict[str, str]:
    given = {name: value for name, value in asdict(settings).items() if value is not None}
    return {**{f"DTQ_{name.upper()}": str(v) for name, v in given.items()}, JOURNAL: str(journal)}
