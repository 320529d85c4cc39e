"""What a worker's log says of tasks that fail, and how much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from dtq_core.decide import Release
from dtq_core.record import Claim
from dtq_tasks.retry import fixed
from dtq_worker import failure_log
from dtq_worker.failure_log import LINES_A_SECOND, FailureLog
from dtq_worker.held import Held
from worker.stage import Stage, eventually

CLAIM = Claim("f" * 32, "default", "normal", "1-1", 1, 3, 7, b"", b"", 0, 0, 1_000, 0, 0, 0)
LATER = Release(CLAIM.task_id, CLAIM.lease, 5_000, "unknown task name")
UNKNOWN = "no handler of this name is registered here: its tasks are given back"


@pytest.fixture
def lines() -> Iterator[list[Any]]:
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which the test turns."""
    now = [100.0]
    monkeypatch.setattr(failure_log, "mono_s", lambda: now[0])
    return now


def loud(lines: list[Any]) -> list[Any]:
    return [line for line in lines if line["log_level"] in {"warning", "error"}]


async def test_each_failed_attempt_is_one_inert_line_and_the_last_one_an_error(
    stage: Stage, lines: list[Any]
) -> None:
    @stage.task(max_attempts=2, retry=fixed(0.05))
    async def explode() -> None:
        raise ValueError("over\n\x1b[31mquota " + "x" * 5_000)

    async with stage.worker():
        handle = await stage.submit(explode)
        await stage.ended(handle)
    first, last = loud(lines)
    assert (first["event"], first["log_level"]) == ("attempt failed, to be retried", "warning")
    assert (last["event"], last["log_level"]) == ("task failed", "error")
    assert [(line["attempt"], line["max_attempts"]) for line in (first, last)] == [(1, 2), (2, 2)]
    assert first["retry_in_s"] == 0.05
    for line in (first, last):
        assert (line["task_id"], line["queue"]) == (handle.id, "default")
        assert line["name"] == explode.name
        assert line["error"].startswith("ValueError: over \\x1b[31mquota xxx")
        assert line["error"].isprintable()
        assert len(line["error"]) <= 200


async def test_a_timeout_is_logged_like_any_failure(stage: Stage, lines: list[Any]) -> None:
    @stage.task(max_attempts=1, timeout=0.05)
    async def hang() -> None:
        await asyncio.sleep(60)

    async with stage.worker():
        await stage.ended(await stage.submit(hang))
    (line,) = loud(lines)
    assert line["event"] == "task failed"
    assert "0.05" in line["error"]


async def test_success_and_cancelling_log_nothing(stage: Stage, lines: list[Any]) -> None:
    @stage.task
    async def well() -> None: ...

    @stage.task
    async def long() -> None:
        await asyncio.sleep(60)

    async with stage.worker():
        await stage.ended(await stage.submit(well))
        running = await stage.submit(long)
        await eventually("it runs", lambda: stage.has_status(running, "RUNNING"))
        await running.cancel()
        await stage.ended(running)
        said = [line["event"] for line in lines]
    assert set(said) <= {"worker started"}


async def test_an_unknown_name_is_said_once_however_many_tasks_bear_it(
    stage: Stage, lines: list[Any]
) -> None:
    async with stage.worker():
        handles = [await stage.submit_by_name("nobody_knows") for _ in range(5)]

        async def given_back_twice() -> bool:
            return all([(await handle.info()).releases > 1 for handle in handles])

        await eventually("all to be given back twice", given_back_twice)
        for handle in handles:
            await handle.cancel()
        await stage.ended(*handles)
    (line,) = loud(lines)
    assert (line["event"], line["name"], line["again_in_s"]) == (UNKNOWN, "nobody_knows", 0.1)


def test_an_unknown_name_is_said_again_after_a_minute(lines: list[Any], clock: list[float]) -> None:
    log, held = FailureLog(), Held(CLAIM, 0)
    for name in ("a", "b", "a"):
        held.name = name
        log.note(held, LATER)
    assert [line["name"] for line in lines] == ["a", "b"]
    clock[0] += 60
    log.note(held, LATER)
    assert [line["name"] for line in lines] == ["a", "b", "a"]


async def test_a_flood_of_failures_is_counted_beyond_so_many_lines_a_second(
    stage: Stage, lines: list[Any], clock: list[float]
) -> None:
    @stage.task(max_attempts=1)
    async def explode() -> None:
        raise ValueError

    async with stage.worker():
        await stage.ended(*await stage.submit_many(explode, [()] * 100))
    said = [line for line in loud(lines) if line["event"] == "task failed"]
    rest = [line for line in loud(lines) if line["event"] == "more attempts failed than are logged"]
    assert len(said) == LINES_A_SECOND
    assert sum(line["count"] for line in rest) == 100 - LINES_A_SECOND
    assert len(rest) < 100 - LINES_A_SECOND
