"""A running task that is cancelled stops soon, and a cancel that was answered is final."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable

from dtq_core.clock import mono_s
from dtq_tasks import Context
from worker import handlers
from worker.processes import Child, Journal
from worker.stage import Stage, eventually

PROMISED_S = 2.0
"""Twice what is promised: the machine may be busy."""


async def test_f2_a_running_task_is_cancelled_within_a_second_even_when_all_slots_are_taken(
    stage: Stage,
) -> None:
    @stage.task
    async def on_loop() -> None:
        await asyncio.sleep(60)

    @stage.task
    def in_thread(ctx: Context) -> None:
        while not ctx.cancelled:
            time.sleep(0.01)
        raise RuntimeError("stopped half-way")

    async with stage.worker(visibility_timeout=30, concurrency=4):
        handles = [
            await stage.submit(handler) for handler in (on_loop, in_thread, on_loop, in_thread)
        ]
        await stage.started(*handles)
        asked_s = mono_s()
        for handle in handles:
            assert await handle.cancel("enough") == "requested"
        assert await stage.ended(*handles) == ["CANCELLED"] * 4
        assert mono_s() - asked_s < PROMISED_S
        [attempt] = await handles[0].attempts()
    assert attempt.outcome == "cancelled"


async def test_f2_the_heartbeat_goes_on_when_all_slots_are_taken(stage: Stage) -> None:
    go_on = asyncio.Event()

    @stage.task
    async def handler() -> None:
        await go_on.wait()

    async with stage.worker(concurrency=2) as worker:
        handles = await stage.submit_many(handler, [()] * 2)
        await stage.started(*handles)
        key = stage.keys.worker(worker.id)
        before = int(await stage.raw.hget(key, "seen_ms"))

        async def seen_later() -> bool:
            return int(await stage.raw.hget(key, "seen_ms")) > before

        await eventually("another heartbeat", seen_later, 2)
        running = await stage.raw.hget(key, "running")
        assert all(handle.id.encode() in running for handle in handles)
        go_on.set()
        await stage.ended(*handles)


async def test_a_worker_counts_what_it_runs_beyond_what_it_tells_of(stage: Stage) -> None:
    go_on = asyncio.Event()

    @stage.task
    async def handler() -> None:
        await go_on.wait()

    async with stage.worker(concurrency=120) as worker:
        handles = await stage.submit_many(handler, [()] * 110)
        await stage.started(*handles)

        async def told() -> bool:
            return await stage.raw.hget(stage.keys.worker(worker.id), "running_count") == b"110"

        await eventually("a heartbeat that counts all", told, 5)
        running = await stage.raw.hget(stage.keys.worker(worker.id), "running")
        assert len(json.loads(running)) == 100
        go_on.set()
        await stage.ended(*handles)


async def test_g2_a_cancelled_task_that_then_fails_is_not_tried_again(stage: Stage) -> None:
    runs = 0

    @stage.task(retry=[0.01], max_attempts=5)
    async def handler() -> None:
        nonlocal runs
        runs += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionError("lost while cleaning up") from None

    @stage.task(retry=[0.01], max_attempts=5)
    def deaf(ctx: Context) -> None:
        nonlocal runs
        runs += 1
        while not ctx.cancelled:
            time.sleep(0.01)
        raise ConnectionError("a retryable error")

    async with stage.worker():
        handles = [await stage.submit(handler), await stage.submit(deaf)]
        await stage.started(*handles)
        for handle in handles:
            await handle.cancel()
        assert await stage.ended(*handles) == ["CANCELLED"] * 2
    assert runs == 2


async def test_g2_a_cancelled_task_that_returns_all_the_same_has_succeeded(stage: Stage) -> None:
    @stage.task
    async def handler() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done before I heard"
        return "never"

    async with stage.worker():
        handle = await stage.submit(handler)
        await stage.started(handle)
        assert await handle.cancel() == "requested"
        assert await handle.result(10) == "done before I heard"
        assert await handle.cancel() == "ended"


async def test_g2_a_task_cancelled_while_it_waits_never_runs(stage: Stage) -> None:
    runs = 0

    @stage.task(retry=[0.2], max_attempts=3)
    async def handler() -> None:
        nonlocal runs
        runs += 1
        raise ValueError("again")

    queued = await stage.submit(handler)
    delayed = await stage.submit(handler.options(delay=0.1))
    assert [await queued.cancel(), await delayed.cancel()] == ["cancelled", "cancelled"]
    async with stage.worker():
        retrying = await stage.submit(handler)
        await eventually("a retry", lambda: stage.has_status(retrying, "RETRYING"))
        assert await retrying.cancel() == "cancelled"
        await asyncio.sleep(0.3)
    assert await stage.ended(queued, delayed, retrying) == ["CANCELLED"] * 3
    assert runs == 1


async def test_g2_a_cancel_at_the_due_time_is_final_or_comes_too_late_never_both(
    stage: Stage,
) -> None:
    runs: list[str] = []

    @stage.task
    async def handler(ctx: Context) -> None:
        runs.append(ctx.id)

    async def race(n: int) -> None:
        handle = await stage.submit(handler.options(delay=0.1))
        await asyncio.sleep(0.1 + (n % 11 - 5) / 1000)
        answer = await handle.cancel()
        [status] = await stage.ended(handle)
        assert (handle.id in runs) == (status == "SUCCEEDED")
        if answer == "cancelled":
            assert status == "CANCELLED"

    async with stage.worker(concurrency=100):
        for _ in range(4):
            await asyncio.gather(*(race(n) for n in range(50)))
    assert len(set(runs)) == len(runs)


async def test_g2_a_task_cancelled_just_before_its_worker_is_killed_is_not_revived(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    victim = child(visibility_timeout=0.5)
    handle = await stage.submit(handlers.nap, 60)
    await journal.wait_for("start")
    victim.signal(signal.SIGSTOP)
    assert await handle.cancel() == "requested"
    victim.signal(signal.SIGKILL)
    await victim.ended()
    child(visibility_timeout=0.5, reaper_interval=0.1)
    assert await stage.ended(handle) == ["CANCELLED"]
    assert len(journal.lines("start")) == 1
