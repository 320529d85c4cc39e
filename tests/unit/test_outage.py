"""What a loop says and waits while something fails."""

from __future__ import annotations

from typing import Any

import pytest

from dtq_core import outage
from dtq_core.outage import Outage

FAILED = RuntimeError("away")


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, line: str, **_: Any) -> None:
        self.lines.append(line)

    info = warning


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which the test turns."""
    now = [100.0]
    monkeypatch.setattr(outage, "mono_s", lambda: now[0])
    return now


@pytest.fixture
def log() -> Log:
    return Log()


def test_one_line_when_it_begins_and_one_when_it_is_over(log: Log, clock: list[float]) -> None:
    trouble = Outage(log, "begins", "ends")
    for _ in range(100):
        trouble.met(FAILED)
        clock[0] += 1
    for _ in range(3):
        trouble.over()
    assert log.lines == ["begins", "ends"]


def test_i1_pauses_grow_to_a_limit_however_many_tries_fail(log: Log, clock: list[float]) -> None:
    trouble = Outage(log, "begins", "ends")
    pauses = [trouble.met(FAILED) for _ in range(1100)]
    assert pauses[:6] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert set(pauses[6:]) == {2.0}


def test_what_fails_and_works_by_turns_is_said_once_in_a_while(
    log: Log, clock: list[float]
) -> None:
    trouble = Outage(log, "begins", "ends")
    for _ in range(50):
        trouble.met(FAILED)
        trouble.over()
        clock[0] += 0.5
    assert log.lines == ["begins", "ends"] * 3


def test_a_trouble_that_begins_in_the_quiet_time_and_lasts_is_said_after_it(
    log: Log, clock: list[float]
) -> None:
    trouble = Outage(log, "begins", "ends")
    trouble.met(FAILED)
    trouble.over()
    trouble.met(FAILED)
    clock[0] += 10
    trouble.met(FAILED)
    assert log.lines == ["begins", "ends", "begins"]
