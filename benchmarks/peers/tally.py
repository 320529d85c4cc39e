"""What the handlers report, without touching Redis: counters and times in files shared by memory.

``BENCH_TALLY`` names a folder. Each process counts in a file of its own; the time at which task
number N started stands at place N of ``started``; a long task adds a line to ``sleeps``.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

FOLDER = Path(os.environ.get("BENCH_TALLY", "."))
PLACES = 100_000
"""So many start times are kept."""


class _Counter:
    """Open in each process at its first task, also after a fork."""

    def __init__(self) -> None:
        self._places: dict[str, memoryview] = {}
        os.register_at_fork(after_in_child=self._places.clear)

    def of(self, name: str, places: int) -> memoryview:
        found = self._places.get(name)
        if found is None:
            found = self._places[name] = shared(FOLDER / name, places)
        return found


_counter = _Counter()


def shared(path: Path, places: int) -> memoryview:
    """Numbers of 64 bits in a file that several processes see."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if os.fstat(descriptor).st_size < places * 8:
            os.ftruncate(descriptor, places * 8)
        return memoryview(mmap.mmap(descriptor, places * 8)).cast("Q")
    finally:
        os.close(descriptor)


def tick() -> int:
    """Count one task that did nothing; return the count, as a result to store."""
    place = _counter.of(f"count-{os.getpid()}", 1)
    place[0] += 1
    return place[0]


def started(number: int) -> int:
    """Note when task ``number`` started, on the clock that all processes of a machine share."""
    now = time.monotonic_ns()
    _counter.of("started", PLACES)[number] = now
    return now


def slept() -> None:
    """Note that a long task started."""
    with open(FOLDER / "sleeps", "a", encoding="ascii") as file:
        file.write(f"{time.monotonic_ns()}\n")
