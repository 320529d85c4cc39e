"""A worker that stops waits for what it runs, gives back the rest, and costs no task an attempt."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable

import pytest

from dtq_core.clock import mono_s
from dtq_core.errors import RedisUnavailableError
from dtq_core.scripts import CLAIM
from dtq_tasks import Context
from dtq_worker import Worker
from support.proxy import Fault, Proxy, is_command, runs
from worker import handlers
from worker.processes import Child, Journal
from worker.stage import Stage, eventually

SHORT = {"visibility_timeout": 0.5, "reaper_interval": 0.1}


async def consumers(stage: Stage) -> set[bytes]:
    """Who is known to the group of the band that tests use, but for the keeper of overdue ones."""
    found = await stage.raw.xinfo_consumers(stage.keys.stream("default", "normal"), "workers")
    return {consumer["name"] for consumer in found} - {b"overdue"}


async def test_b5_a_worker_told_to_stop_finishes_what_it_runs_and_takes_nothing_new(
    stage: Stage,
) -> None:
    started: list[int] = []

    @stage.task
    async def handler(n: int) -> int:
        started.append(n)
        await asyncio.sleep(0.3)
        return n

    async with stage.worker(concurrency=2) as worker:
        handles = await stage.submit_many(handler, [(n,) for n in range(6)])
        await eventually("two to be running", lambda: len(started) == 2)
        worker.stop()
    assert len(started) == 2
    assert [await handles[n].result(1) for n in started] == started
    async with stage.worker():
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert len(started) == 6


async def test_what_runs_longer_than_the_grace_time_is_given_back_at_no_attempt(
    stage: Stage,
) -> None:
    interrupted: list[str] = []
    let_go = threading.Event()

    @stage.task(max_attempts=1)
    async def polite() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            interrupted.append("polite")
            raise

    @stage.task(max_attempts=1)
    async def fails_when_interrupted() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            interrupted.append("fails")
            raise ConnectionError("closed") from None

    @stage.task(max_attempts=1)
    def deaf() -> None:
        let_go.wait(30)

    @stage.task(max_attempts=1)
    async def finishes_when_interrupted() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "done"

    tasks = [polite, fails_when_interrupted, deaf, finishes_when_interrupted]
    async with stage.worker(shutdown_grace=0.2):
        handles = [await stage.submit(task) for task in tasks]
        await stage.started(*handles)
    let_go.set()
    infos = [await handle.info() for handle in handles]
    assert [info.status for info in infos] == ["QUEUED"] * 3 + ["SUCCEEDED"]
    assert [(info.attempt, info.releases, info.crashes) for info in infos[:3]] == [(1, 1, 0)] * 3
    assert sorted(interrupted) == ["fails", "polite"]
    assert await consumers(stage) == set()
    for handle in handles[:3]:
        assert await handle.cancel() == "cancelled"


async def test_a_stopped_worker_leaves_nothing_of_itself_behind(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    async with stage.worker(scheduler=True) as worker:
        await stage.ended(await stage.submit(handler))
        assert await consumers(stage) == {worker.id.encode()}
        assert await stage.raw.zcard(stage.keys.workers) == 1
        await eventually("a leader", lambda: stage.raw.exists(stage.keys.leader))
    assert await consumers(stage) == set()
    assert await stage.raw.zcard(stage.keys.workers) == 0
    assert await stage.raw.exists(stage.keys.worker(worker.id), stage.keys.leader) == 0


async def test_h4_leases_are_renewed_until_the_last_task_has_ended(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    stopping = child(**SHORT, shutdown_grace=10)
    handles = [await stage.submit(handlers.nap, 1.5), await stage.submit(handlers.doze, 1.5)]
    await journal.wait_for("start", 2)
    child(**SHORT)
    stopping.signal(signal.SIGTERM)
    assert await stopping.ended() == 0
    assert await stage.ended(*handles) == ["SUCCEEDED"] * 2
    assert len(journal.lines("start")) == 2


async def test_h1_five_deploys_use_up_no_attempt(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    handles = [
        await stage.submit(handler.options(max_attempts=most), 60)
        for handler in (handlers.nap, handlers.doze)
        for most in (1, 3)
    ]
    for deploy in range(1, 6):
        worker = child(visibility_timeout=30, shutdown_grace=0.1)
        await journal.wait_for("start", 4 * deploy)
        worker.signal(signal.SIGTERM)
        assert await worker.ended() == 0
    infos = [await handle.info() for handle in handles]
    assert {(info.status, info.attempt, info.releases) for info in infos} == {("QUEUED", 1, 5)}
    for handle in handles:
        await handle.cancel()


async def test_a_worker_told_to_hurry_gives_everything_back_at_once_and_says_so(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    worker = child(visibility_timeout=30, shutdown_grace=60)
    handles = [
        await stage.submit(handler.options(max_attempts=1), 60)
        for handler in (handlers.nap, handlers.doze, handlers.stubborn)
    ]
    await journal.wait_for("start", 3)
    worker.signal(signal.SIGTERM)
    second_s = mono_s()
    worker.hurry()
    assert await worker.ended() == 1
    assert mono_s() - second_s < 2
    infos = [await handle.info() for handle in handles]
    assert {(info.status, info.attempt, info.releases) for info in infos} == {("QUEUED", 1, 1)}
    assert await consumers(stage) == set()
    for handle in handles:
        await handle.cancel()


async def test_g3_a_stop_ends_soon_after_the_grace_time_though_handlers_never_stop(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    worker = child(visibility_timeout=30, shutdown_grace=0.2)
    handles = [
        await stage.submit(handler.options(max_attempts=1), 60)
        for handler in (handlers.doze, handlers.stubborn)
    ]
    await journal.wait_for("start", 2)
    told_s = mono_s()
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0
    assert mono_s() - told_s < 0.2 + 4
    for handle in handles:
        info = await handle.info()
        assert (info.status, info.attempt, info.releases) == ("QUEUED", 1, 1)
        await handle.cancel()


async def test_a_stop_while_handlers_are_stuck_is_no_second_signal(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    worker = child(visibility_timeout=30, shutdown_grace=30)
    stuck = [
        await stage.submit(handlers.doze.options(timeout=0.2, max_attempts=1), 60) for _ in range(3)
    ]
    long = await stage.submit(handlers.nap.options(max_attempts=1), 1.5)
    await journal.wait_for("start", 4)
    assert await stage.ended(*stuck) == ["DEAD_LETTERED"] * 3
    assert await worker.ended() == 0
    assert await stage.ended(long) == ["SUCCEEDED"]


async def test_a_child_whose_supervisor_is_gone_finishes_and_ends(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    worker = child(shutdown_grace=10)
    handle = await stage.submit(handlers.nap, 0.7)
    await journal.wait_for("start")
    worker.hang_up()
    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGTERM)
    assert await worker.ended() == 0
    assert await stage.ended(handle) == ["SUCCEEDED"]


@pytest.mark.parametrize("fault", [Fault.CUT_REPLY, Fault.DROP_REPLY])
async def test_a_claim_in_flight_at_the_stop_is_given_back(stage: Stage, fault: Fault) -> None:
    @stage.task(max_attempts=1)
    async def handler() -> None: ...

    with Proxy(stage.url) as proxy:
        async with stage.worker(redis_url=proxy.url, scheduler=False) as worker:
            await eventually("it to be idle", lambda: _waits(stage))
            proxy.arm(fault, runs(CLAIM))
            handles = await stage.submit_many(handler, [()] * 3)
            await eventually("the claim", lambda: proxy.hits)
            worker.stop()
        infos = [await handle.info() for handle in handles]
    for info in infos:
        assert (info.status, info.attempt, info.crashes) in [
            ("QUEUED", 1, 0),
            ("SUCCEEDED", 1, 0),
        ]
    assert await consumers(stage) == set()
    async with stage.worker():
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert {(await handle.info()).attempt for handle in handles} == {1}


async def _waits(stage: Stage) -> bool:
    return any(client["cmd"] == "blpop" for client in await stage.raw.client_list())


async def test_a_wake_up_token_that_a_stopping_worker_took_is_passed_on(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    wake = stage.keys.wake("default")
    with Proxy(stage.url) as proxy:
        async with stage.worker(redis_url=proxy.url, scheduler=False) as worker:
            proxy.arm(Fault.DROP_REPLY, is_command("BLPOP"))
            await eventually("it to wait", lambda: proxy.hits)
            handle = await stage.submit(handler)
            await eventually("the token to be taken", lambda: _is_empty(stage, wake))
            worker.stop()
        assert await stage.raw.llen(wake) > 0
        assert await handle.status() == "QUEUED"
    await handle.cancel()


async def _is_empty(stage: Stage, key: str) -> bool:
    return await stage.raw.llen(key) == 0


async def test_a_worker_that_is_stopped_while_it_starts_ends_at_once(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    for pauses in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        async with stage.worker() as worker:
            for _ in range(pauses):
                await asyncio.sleep(0)
            stopped_s = mono_s()
            worker.stop()
        assert mono_s() - stopped_s < 2


async def test_a_worker_that_was_stopped_before_it_ran_takes_nothing(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    handle = await stage.submit(handler)
    worker = Worker(stage.registry, settings=stage.settings())
    worker.stop()
    await asyncio.wait_for(worker.run(), 5)
    info = await handle.info()
    assert (info.status, info.attempt) == ("QUEUED", 1)
    await handle.cancel()


async def test_a_worker_in_a_program_says_when_redis_is_not_there(stage: Stage) -> None:
    nowhere = stage.settings(redis_url="unix:///nowhere.sock")
    with pytest.raises(RedisUnavailableError, match="nowhere"):
        await Worker(stage.registry, settings=nowhere).run()


async def test_a_worker_without_grace_time_gives_everything_back_at_once(stage: Stage) -> None:
    @stage.task(max_attempts=1)
    async def handler(ctx: Context) -> None:
        await asyncio.sleep(60)

    async with stage.worker(shutdown_grace=0) as worker:
        handle = await stage.submit(handler)
        await stage.started(handle)
        worker.stop()
    info = await handle.info()
    assert (info.status, info.attempt, info.releases) == ("QUEUED", 1, 1)
    await handle.cancel()
