"""What a worker measures of its attempts, and tells when it stops at the latest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dtq_client.queries.measures import measured
from dtq_core.measures import UNKNOWN_TASK, Measures
from dtq_core.store import Store
from dtq_tasks import Context
from worker.stage import Stage, staged


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async with staged(redis_url) as made:
        yield made


async def told(stage: Stage) -> Measures:
    def read() -> Measures:
        store = Store(stage.settings())
        try:
            return measured(store)
        finally:
            store.close()

    return await asyncio.to_thread(read)


async def test_each_attempt_is_counted_by_queue_task_and_outcome(stage: Stage) -> None:
    @stage.task(retry=[0.02], max_attempts=2)
    async def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError("once")

    @stage.task(max_attempts=1, queue="other")
    def hopeless() -> None:
        raise ValueError("always")

    handles = [await stage.submit(flaky) for _ in range(3)]
    handles.append(await stage.submit(hopeless))
    async with stage.worker(queues=["default", "other"]):
        await stage.ended(*handles)
    found = (await told(stage)).attempts
    assert found["default", "flaky"].ended == {"retried": 3, "succeeded": 3}
    assert found["other", "hopeless"].ended == {"failed": 1}
    assert sum(found["default", "flaky"].waited.counts) == 6
    assert sum(found["default", "flaky"].ran.counts) == 6


async def test_waiting_and_running_are_measured_apart(stage: Stage) -> None:
    @stage.task
    async def sleep() -> None:
        await asyncio.sleep(0.3)

    handle = await stage.submit(sleep)
    await asyncio.sleep(0.6)
    async with stage.worker():
        await stage.ended(handle)
    found = (await told(stage)).attempts["default", "sleep"]
    assert found.waited.sum_us >= 600_000
    assert 300_000 <= found.ran.sum_us < found.waited.sum_us


async def test_the_wait_of_a_delayed_task_begins_when_it_is_due(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    async with stage.worker():
        await stage.ended(await stage.submit(handler.options(delay=1.0)))
    found = (await told(stage)).attempts["default", "handler"]
    assert found.waited.sum_us < 900_000


async def test_names_that_nobody_knows_are_one(stage: Stage) -> None:
    handles = [await stage.client.submit_by_name(f"nobody{n}") for n in range(3)]
    async with stage.worker(unknown_task_timeout=0.05, unknown_task_delay=0.05):
        for handle in handles:
            assert (await stage.ended(handle)) == ["DEAD_LETTERED"]
    found = (await told(stage)).attempts
    assert set(found) == {("default", UNKNOWN_TASK)}
    assert found["default", UNKNOWN_TASK].ended["failed"] == 3
    assert sum(found["default", UNKNOWN_TASK].ran.counts) == 0


async def test_round_trips_are_measured_by_script(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    async with stage.worker():
        await stage.ended(await stage.submit(handler))
    calls = (await told(stage)).calls
    assert {"claim", "finish"} <= set(calls)
    assert calls["finish"].sum_us > 0


async def test_a_key_that_is_not_ours_harms_no_task(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    await stage.raw.set(stage.keys.measures, "foreign")
    async with stage.worker():
        assert await stage.ended(await stage.submit(handler)) == ["SUCCEEDED"]
    assert list((await told(stage)).fields()) == []
    await stage.raw.delete(stage.keys.measures)
