"""The processes of a scene: supervisors, worker processes without one, schedulers, submitters."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from crash.handlers import JOURNAL
from dtq_core.settings import Settings
from dtq_worker.child import Orders
from dtq_worker.identity import new_worker_id
from support.eventually import eventually

TESTS = Path(__file__).parent.parent


class Program:
    """A Python module, run in a process group of its own."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: dict[str, str],
        log: Path,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        self.log = log
        clean = {name: value for name, value in os.environ.items() if not name.startswith("DTQ_")}
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**clean, "PYTHONPATH": str(TESTS), **environment},
                stdin=stdin,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill_all(self) -> None:
        """Kill it and all that it started, at once, as a power failure does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def killed(self) -> None:
        """Wait until it was killed."""
        code = self.ended()
        assert code == -signal.SIGKILL, f"it ended with {code}: {self.log.read_text()}"

    def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        eventually(f"the end of {self.log.name}", lambda: self._process.poll() is not None)
        return self._process.returncode


def lone_worker(settings: Settings, environment: dict[str, str], log: Path) -> Program:
    """Start a worker process; this test is its supervisor, and does nothing when it dies."""
    given = asdict(settings)
    orders = Orders(new_worker_id(), ["crash.handlers"], None, given, allow_eviction=False)
    ours, its = socket.socketpair()
    with its:
        program = Program("dtq_worker.child", [], environment, log, stdin=its.fileno())
    ours.sendall(msgspec.json.encode(orders) + b"\n")
    ours.detach()  # it stays open for as long as this process lives
    return program


def environment_of(settings: Settings, journal: Path) -> dict[str, str]:
    given = {name: value for name, value in asdict(settings).items() if value is not None}
    return {**{f"DTQ_{name.upper()}": str(v) for name, v in given.items()}, JOURNAL: str(journal)}
