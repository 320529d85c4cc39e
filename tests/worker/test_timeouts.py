"""An attempt that takes too long is over in time, and follows the retry policy."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from dtq_tasks import Context
from dtq_worker import executor
from worker.stage import Stage


@pytest.fixture
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "STUCK_AFTER_S", 0.2)


async def test_a_handler_on_the_loop_is_cancelled_and_tried_again_by_its_policy(
    stage: Stage,
) -> None:
    cleaned_up = 0

    @stage.task(timeout=0.1, retry=[0.01], max_attempts=2)
    async def handler() -> None:
        nonlocal cleaned_up
        try:
            await asyncio.sleep(60)
        finally:
            cleaned_up += 1

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        attempts = await handle.attempts()
        assert "took longer than its 0.1 s" in ((await handle.info()).error or "")
    assert cleaned_up == 2
    assert [(a.outcome, a.error and a.error["type"]) for a in attempts] == [
        ("retry", "TimeoutError"),
        ("failed", "TimeoutError"),
    ]


@pytest.mark.parametrize("rules", [{"give_up_on": TimeoutError}, {"retry_on": ValueError}])
async def test_a_task_can_say_that_a_timeout_is_not_worth_another_attempt(
    stage: Stage, rules: dict[str, Any]
) -> None:
    @stage.task(timeout=0.05, retry=[0.01], max_attempts=5, **rules)
    async def handler() -> None:
        await asyncio.sleep(60)

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert len(await handle.attempts()) == 1


async def test_the_submission_may_ask_for_another_timeout(stage: Stage) -> None:
    @stage.task(timeout=60, max_attempts=1)
    async def handler() -> None:
        await asyncio.sleep(60)

    async with stage.worker():
        handle = await stage.submit(handler.options(timeout=0.05))
        assert await stage.ended(handle) == ["DEAD_LETTERED"]


async def test_a_handler_that_answers_its_timeout_with_an_error_has_timed_out(
    stage: Stage,
) -> None:
    @stage.task(timeout=0.05, max_attempts=1)
    async def handler() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert "TimeoutError" in ((await handle.info()).error or "")


@pytest.mark.usefixtures("_little_patience")
async def test_g3_a_handler_that_swallows_its_timeout_is_over_in_time_and_keeps_its_slot(
    stage: Stage,
) -> None:
    running, most, let_go = 0, 0, asyncio.Event()

    @stage.task(timeout=0.1, max_attempts=1)
    async def zombie() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        running -= 1

    @stage.task
    async def quick() -> str:
        return "ran"

    async with stage.worker(concurrency=3):
        zombies = [await stage.submit(zombie), await stage.submit(zombie)]
        assert await stage.ended(*zombies, limit_s=3) == ["DEAD_LETTERED"] * 2
        handles = await stage.submit_many(quick, [()] * 10)
        third = await stage.submit(zombie)
        assert set(await stage.ended(*handles, third)) == {"SUCCEEDED", "DEAD_LETTERED"}
        assert running == most == 3
        let_go.set()
        assert await (await stage.submit(quick)).result(5) == "ran"
    assert {(await handle.info()).status for handle in zombies} == {"DEAD_LETTERED"}


async def test_g3_a_handler_in_a_thread_is_over_in_time_keeps_its_slot_and_cannot_write_a_result(
    stage: Stage,
) -> None:
    let_go = threading.Event()

    @stage.task(timeout=0.1, retry=[0.01], max_attempts=2)
    def zombie(ctx: Context) -> str:
        if ctx.attempt == 1:
            let_go.wait(30)
            assert ctx.cancelled
            return "from the grave"
        return "second"

    @stage.task
    def quick() -> str:
        return "ran"

    async with stage.worker(concurrency=2):
        handle = await stage.submit(zombie)
        assert await handle.result(5) == "second"
        handles = await stage.submit_many(quick, [()] * 5)
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
        let_go.set()
        await asyncio.sleep(0.1)
        assert await handle.result(5) == "second"
    assert [a.outcome for a in await handle.attempts()] == ["retry", "succeeded"]


async def test_b2_a_timeout_at_the_visibility_timeout_never_runs_a_task_twice_at_once(
    stage: Stage,
) -> None:
    running: dict[str, int] = {}
    overlaps, runs = 0, 0

    @stage.task(retry=[0], max_attempts=2)
    async def handler(ctx: Context) -> None:
        nonlocal overlaps, runs
        runs += 1
        overlaps += running.get(ctx.id, 0)
        running[ctx.id] = running.get(ctx.id, 0) + 1
        try:
            await asyncio.sleep(60)
        finally:
            running[ctx.id] -= 1

    quick = {"visibility_timeout": 0.5, "reaper_interval": 0.05, "concurrency": 18}
    async with stage.worker(**quick), stage.worker(**quick):
        handles = [
            await stage.submit(
                handler.options(idempotency_key=f"k{n}", timeout=0.45 + n % 3 * 0.05)
            )
            for n in range(36)
        ]
        assert set(await stage.ended(*handles)) == {"DEAD_LETTERED"}
        infos = [await handle.info() for handle in handles]
    assert overlaps == 0
    assert runs == 72
    assert {(info.attempt, info.crashes) for info in infos} == {(2, 0)}


async def test_a_timeout_counts_from_the_start_of_the_attempt_not_of_the_task(
    stage: Stage,
) -> None:
    @stage.task(timeout=0.3, retry=[0.01], max_attempts=3)
    async def handler(ctx: Context) -> int:
        await asyncio.sleep(0.2)
        if ctx.attempt < 3:
            raise ValueError("again")
        return ctx.attempt

    async with stage.worker():
        assert await (await stage.submit(handler)).result(10) == 3


@pytest.mark.usefixtures("_little_patience")
async def test_a_cancelled_handler_that_goes_on_still_has_its_timeout(stage: Stage) -> None:
    let_go = asyncio.Event()

    @stage.task(timeout=0.6, max_attempts=1)
    async def stubborn() -> None:
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()

    async with stage.worker():
        handle = await stage.submit(stubborn)
        await stage.started(handle)
        assert await handle.cancel() == "requested"
        assert await stage.ended(handle, limit_s=6) == ["CANCELLED"]
        let_go.set()
