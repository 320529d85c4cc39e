"""What becomes of a task whose handler fails: the policy decides, and attempts are counted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest

from dtq_core.errors import TaskFailedError
from dtq_tasks import Context, GiveUp, Retry, exponential
from worker.stage import Stage, eventually


async def test_a_failing_task_is_tried_again_until_it_succeeds(stage: Stage) -> None:
    @stage.task(retry=[0.02], max_attempts=5)
    async def handler(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise RuntimeError(f"attempt {ctx.attempt}")
        return ctx.attempt

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await handle.result(10) == 3
        attempts = await handle.attempts()
    assert [a.outcome for a in attempts] == ["retry", "retry", "succeeded"]
    assert [a.attempt for a in attempts] == [1, 2, 3]
    assert attempts[0].error is not None
    assert attempts[0].error["type"] == "RuntimeError"
    assert "attempt 1" in attempts[0].error["traceback"]


async def test_a_task_that_always_fails_ends_in_the_dead_letter_stream(stage: Stage) -> None:
    runs = 0

    @stage.task(retry=[0.02], max_attempts=3)
    def handler() -> None:
        nonlocal runs
        runs += 1
        raise ValueError("no good")

    async with stage.worker():
        handle = await stage.submit(handler)
        with pytest.raises(TaskFailedError, match="ValueError: no good"):
            await handle.result(10)
        assert await handle.status() == "DEAD_LETTERED"
    assert runs == 3
    [(_, entry)] = await stage.raw.xrange(stage.keys.dlq)
    assert entry[b"id"] == handle.id.encode()
    assert entry[b"reason"] == b"ValueError: no good"


async def test_without_a_dead_letter_stream_a_task_that_always_fails_is_failed(
    stage: Stage,
) -> None:
    @stage.task(retry=[0.02], max_attempts=2, dead_letter=False)
    async def handler() -> None:
        raise ValueError("no good")

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["FAILED"]
    assert await stage.raw.xlen(stage.keys.dlq) == 0


async def test_retry_after_waits_for_the_time_that_the_handler_says(stage: Stage) -> None:
    @stage.task(retry=[600], max_attempts=2)
    async def handler(ctx: Context) -> str | None:
        if ctx.attempt == 1:
            raise Retry(after=0.05, reason="not yet")
        return ctx.id

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await handle.result(10) == handle.id
        first, _ = await handle.attempts()
    assert first.error is not None
    assert first.error["message"] == "not yet"


async def test_retry_does_not_go_beyond_the_last_attempt(stage: Stage) -> None:
    @stage.task(max_attempts=2)
    async def handler() -> None:
        raise Retry(after=0)

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert len(await handle.attempts()) == 2


async def fails_with_give_up(ctx: Context) -> None:
    raise GiveUp("no such user")


async def fails_with_give_up_in_a_task_group(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(fails_with_give_up(ctx))


async def fails_with_key_error(ctx: Context) -> None:
    raise KeyError("user")


@pytest.mark.parametrize(
    ("handler", "rules"),
    [
        (fails_with_give_up, {}),
        (fails_with_give_up_in_a_task_group, {}),
        (fails_with_key_error, {"give_up_on": LookupError}),
        (fails_with_key_error, {"retry_on": (OSError, ValueError)}),
    ],
)
async def test_an_error_that_is_not_worth_another_attempt_ends_the_task_at_once(
    stage: Stage, handler: Callable[..., Any], rules: dict[str, Any]
) -> None:
    task = stage.task(retry=[0.02], max_attempts=5, **rules)(handler)
    async with stage.worker():
        handle = await stage.submit(task)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert len(await handle.attempts()) == 1


def raises(attempt: int) -> float:
    if attempt == 1:
        return 1
    raise SystemExit("a policy of the user's own")


def answers_nonsense(attempt: int) -> Any:
    return 1 if attempt == 1 else "soon"


def answers_nan(attempt: int) -> float:
    return 1 if attempt == 1 else math.nan


@pytest.mark.parametrize(
    "policy",
    [raises, answers_nonsense, answers_nan, exponential(base=1, factor=10, cap=300)],
    ids=lambda policy: policy.__name__,
)
@pytest.mark.parametrize("attempt", [64, 1_024, 4_000])
async def test_whatever_a_retry_policy_does_at_a_late_attempt_the_task_is_tried_again(
    stage: Stage, policy: Callable[[int], float], attempt: int
) -> None:
    @stage.task(retry=policy, max_attempts=5_000)
    async def handler() -> None:
        raise ValueError("again")

    handle = await stage.submit(handler)
    await stage.raw.hset(stage.keys.task(handle.id), "attempt", attempt)
    [(entry, fields)] = await stage.raw.xrange(stage.keys.stream("default", "normal"))
    await stage.raw.xdel(stage.keys.stream("default", "normal"), entry)
    entry = await stage.raw.xadd(
        stage.keys.stream("default", "normal"), {**fields, b"attempt": attempt}
    )
    await stage.raw.hset(stage.keys.task(handle.id), "entry_id", entry)
    async with stage.worker():
        await eventually("a retry", lambda: stage.raw.zcard(stage.keys.retry_schedule))
        seconds, _ = await stage.raw.time()
        [(_, due_ms)] = await stage.raw.zrange(stage.keys.retry_schedule, 0, -1, withscores=True)
        assert (await handle.cancel()) == "cancelled"
    assert 100 < due_ms / 1000 - seconds <= 301
