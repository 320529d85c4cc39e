"""Several partitions on one server: client, worker and scheduler see to each of them."""

from __future__ import annotations

import asyncio
import signal
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from dtq_core.errors import RedisUnfitError
from dtq_tasks import Context
from dtq_worker import Worker
from worker import handlers
from worker.processes import Child, Journal
from worker.stage import Stage, staged


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async with staged(redis_url, partitions=3) as made:
        yield made


async def test_tasks_of_every_partition_run_wait_retry_and_expire(stage: Stage) -> None:
    runs: list[str] = []

    @stage.task(retry=[0.02], max_attempts=2)
    async def handler(ctx: Context) -> str:
        runs.append(ctx.id)
        if ctx.attempt == 1:
            raise ValueError("once")
        return ctx.id

    now = await stage.submit_many(handler, [()] * 30)
    delayed = await stage.submit_many(handler.options(delay=0.2), [()] * 30)
    expiring = await stage.submit_many(handler.options(delay=0.01, ttl=0.02), [()] * 30)
    doomed = await stage.submit_many(handler.options(delay=600), [()] * 30)
    for group in (now, delayed, expiring, doomed):
        assert {handle.id[-4:] for handle in group} == {"0000", "0001", "0002"}
    for handle in doomed:
        assert await handle.cancel() == "cancelled"
    await asyncio.sleep(0.05)
    async with stage.worker():
        assert set(await stage.ended(*now, *delayed)) == {"SUCCEEDED"}
        assert set(await stage.ended(*expiring)) == {"EXPIRED"}
        assert [await handle.result(5) for handle in now] == [handle.id for handle in now]
    assert sorted(runs) == sorted(2 * [handle.id for handle in (*now, *delayed)])


async def test_an_idempotency_key_chooses_the_partition(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    for n in range(9):
        once = await stage.submit(handler.options(idempotency_key=f"key{n}"))
        twice = await stage.submit(handler.options(idempotency_key=f"key{n}"))
        assert once.id == twice.id
        assert twice.duplicate
        assert int(once.id[-4:], 16) == zlib.crc32(f"key{n}".encode()) % 3
    async with stage.worker():
        await stage.ended(*(stage.client.handle(task_id) for task_id in stage.accepted))


async def test_partitions_share_the_slots_of_a_worker(stage: Stage) -> None:
    running = most = 0

    @stage.task
    async def handler() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    async with stage.worker(concurrency=4):
        for _ in range(5):
            handles = await stage.submit_many(handler, [()] * 60)
            await stage.ended(*handles)
    assert most == 4


async def test_what_a_killed_worker_held_in_any_partition_runs_elsewhere(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    short = {"visibility_timeout": 0.5, "reaper_interval": 0.1, "concurrency": 12}
    victim = child(**short)
    handles = await stage.submit_many(handlers.nap, [(0.5,)] * 12)
    assert len({handle.id[-4:] for handle in handles}) > 1
    await journal.wait_for("start", 12)
    victim.signal(signal.SIGKILL)
    child(**short)
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert len(journal.lines("start")) == 24


async def test_a_running_task_of_any_partition_can_be_cancelled(stage: Stage) -> None:
    @stage.task
    async def handler() -> None:
        await asyncio.sleep(60)

    async with stage.worker(concurrency=9):
        handles = await stage.submit_many(handler, [()] * 9)
        await stage.started(*handles)
        for handle in handles:
            await handle.cancel()
        assert set(await stage.ended(*handles)) == {"CANCELLED"}


async def test_a_worker_set_up_for_another_number_of_partitions_refuses_to_start(
    stage: Stage,
) -> None:
    @stage.task
    async def handler() -> None: ...

    await (await stage.submit(handler)).cancel()
    worker = Worker(stage.registry, settings=stage.settings(partitions=2))
    with pytest.raises(RedisUnfitError, match="DTQ_PARTITIONS=3"):
        await worker.run()
