"""What dead workers leave is cleared away, and nothing that is alive."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import pytest

from dtq_scheduler import sweeper
from worker import handlers
from worker.processes import Child, Journal
from worker.stage import Stage, eventually


@pytest.fixture(autouse=True)
def _swept_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "_WORKERS_EVERY_S", 0.1)


async def consumers(stage: Stage) -> set[str]:
    """Who is known to the group of the band that tests use."""
    stream = stage.keys.stream("default", "normal")
    if not await stage.raw.exists(stream):
        return set()
    found = await stage.raw.xinfo_consumers(stream, "workers")
    return {consumer["name"].decode() for consumer in found} - {"overdue"}


async def test_e2_starts_and_stops_half_of_them_kills_leave_only_the_live_behind(
    stage: Stage, child: Callable[..., Child]
) -> None:
    short = {"visibility_timeout": 0.5, "reaper_interval": 0.1}

    async def life(number: int) -> None:
        worker = child(**short)
        await eventually(
            "its description", lambda: stage.raw.exists(stage.keys.worker(worker.worker_id))
        )
        handle = await stage.submit(handlers.nap, 0)
        await stage.ended(handle)
        worker.signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
        await worker.ended()

    survivor = child(**short)
    for _ in range(5):
        await asyncio.gather(*(life(number) for number in range(6)))
    await stage.ended(await stage.submit(handlers.nap, 0))
    async with stage.scheduler():
        await eventually("the dead to be cleared away", lambda: _only(stage, survivor.worker_id))
        assert await stage.raw.zrange(stage.keys.workers, 0, -1) == [survivor.worker_id.encode()]
        await stage.ended(await stage.submit(handlers.nap, 0))
    assert survivor.exit_code is None


async def _only(stage: Stage, worker_id: str) -> bool:
    workers = await stage.raw.zrange(stage.keys.workers, 0, -1)
    return await consumers(stage) <= {worker_id} and workers == [worker_id.encode()]


async def test_a1_clearing_away_a_worker_never_loses_what_it_held(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    long = {"visibility_timeout": 60, "reaper_interval": 0.05}
    victim = child(**long)
    handles = [await stage.submit(handlers.nap, 1.0) for _ in range(3)]
    await journal.wait_for("start", 3)
    victim.signal(signal.SIGKILL)
    await victim.ended()
    child(**long)
    abandoning = (stage.client.store.abandon(victim.worker_id) for _ in range(8))
    await asyncio.gather(*abandoning)
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert len(journal.lines("start")) == 6
    assert victim.worker_id not in await consumers(stage)


async def test_a1_a_worker_that_is_busy_or_idle_for_long_is_not_cleared_away(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    busy = child(visibility_timeout=0.5, concurrency=1)
    idle = child(visibility_timeout=0.5, concurrency=1)
    async with stage.scheduler():
        handle = await stage.submit(handlers.block, 1.7)
        assert await stage.ended(handle) == ["SUCCEEDED"]
        workers = set(await stage.raw.zrange(stage.keys.workers, 0, -1))
        assert workers == {busy.worker_id.encode(), idle.worker_id.encode()}
    assert len(journal.lines("start")) == 1


async def test_a_foreign_description_of_a_worker_stops_nothing(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    foreign = stage.keys.worker("foreign")
    await stage.raw.zadd(stage.keys.workers, {"foreign": 1, "gone": 2})
    await stage.raw.set(foreign, "not a hash", ex=60)
    async with stage.worker() as worker:
        for _ in range(3):
            assert await (await stage.submit(handler.options(delay=0.1))).result(10) is None
        workers = await stage.raw.zrange(stage.keys.workers, 0, -1)
        assert set(workers) == {b"foreign", worker.id.encode()}
    await stage.raw.delete(foreign)
