"""Executions counted outside dtq: each handler appends a line as it starts, and one as it ends.

A line is one write to a file opened with O_APPEND, so lines of several processes never mix, and
what a killed process wrote stays.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dtq import Context
from dtq_core.clock import mono_s


@dataclass(slots=True)
class Execution:
    """One start of a handler.

    Attributes:
        task_id: of the task.
        attempt: as dtq numbers it.
        pid: of the process.
        started_s: when, monotonic, the same clock in all processes of a host.
        end: ``returned`` or ``raised``; empty where the process did not live to say.
    """

    task_id: str
    attempt: int
    pid: int
    started_s: float
    end: str = ""


@contextlib.contextmanager
def recorded(path: str, context: Context) -> Iterator[None]:
    """Record the execution of what stands inside."""
    _append(path, "started", context)
    try:
        yield
    except BaseException:
        _append(path, "raised", context)
        raise
    _append(path, "returned", context)


def _append(path: str, event: str, context: Context) -> None:
    line = f"{event} {context.id} {context.attempt} {os.getpid()} {mono_s():.6f}\n"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line.encode())
    finally:
        os.close(fd)


def read_journal(path: Path) -> list[Execution]:
    """Return every execution so far, in the order in which they started."""
    executions: list[Execution] = []
    running: dict[tuple[str, str, str], Execution] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        event, task_id, attempt, pid, at_s = line.split()
        key = (task_id, attempt, pid)
        if event == "started":
            running[key] = Execution(task_id, int(attempt), int(pid), float(at_s))
            executions.append(running[key])
        else:
            running[key].end = event
    return executions
