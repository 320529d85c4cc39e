"""What handlers wrote down: executions, counted outside dtq."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from dtq_core.clock import mono_s
from dtq_tasks import Context

JOURNAL = "DTQ_TEST_JOURNAL"
"""Where a program finds the path of its journal."""


def note(event: str, ctx: Context) -> None:
    """Append one line, in one write."""
    line = f"{event} {ctx.task_id} {ctx.attempt} {os.getpid()} {mono_s():.6f}\n"
    fd = os.open(os.environ[JOURNAL], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


class Line(NamedTuple):
    """What a handler wrote down; the time is monotonic."""

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
        """Return what was written, of one event and one task where they are given."""
        if not self.path.exists():
            return []
        whole, _, _ = self.path.read_text().rpartition("\n")
        rows = (text.split() for text in whole.splitlines())
        found = [Line(kind, of, int(n), int(pid), float(at)) for kind, of, n, pid, at in rows]
        return [
            line
            for line in found
            if event in {None, line.event} and task_id in {None, line.task_id}
        ]

    def of_process(self, pid: int) -> list[Line]:
        """Return what one process wrote."""
        return [line for line in self.lines() if line.pid == pid]

    def count(self, event: str) -> Counter[str]:
        """Return how often an event was written down for each task."""
        return Counter(line.task_id for line in self.lines(event))

    def attempts(self, task_id: str) -> list[int]:
        """Return the attempts that were started, in order."""
        return [line.attempt for line in self.lines("start", task_id)]
