"""Redis goes away and comes back: nothing is lost, nothing crashes, and work resumes by itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from dtq_core.clock import mono_s
from support.programs import gone
from worker import handlers
from worker.fixtures import Children, Deployment
from worker.processes import Child, Crew, Journal
from worker.server import Server
from worker.stage import Stage, eventually, staged

SHORT = {"visibility_timeout": 0.5, "reaper_interval": 0.1, "connect_timeout": 0.5}
AWAY_S = 1.5
"""Three visibility timeouts."""


@pytest.fixture
async def stage(server: Server) -> AsyncIterator[Stage]:
    async with staged(server.url) as made:
        yield made


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_a_server_that_is_killed_and_started_again_under_load_loses_nothing(
    deploy: Callable[..., AbstractAsyncContextManager[Deployment]],
) -> None:
    async def survive(fsync: str) -> None:
        async with deploy(fsync, fsync) as deployment, deployment.stage.scheduler():
            await kill_and_start_under_load(deployment)

    await asyncio.gather(survive("everysec"), survive("always"))


async def kill_and_start_under_load(deployment: Deployment) -> None:
    server, stage, child, journal = deployment
    workers = [child(**SHORT), child(**SHORT)]
    handles = await stage.submit_many(handlers.nap, [(0.02,)] * 150)
    await journal.wait_for("end", 20)
    through = [await stage.submit(handler, 0.6) for handler in (handlers.nap, handlers.doze)]
    for handle in through:
        await journal.wait_for("start", task_id=handle.id)
    server.kill()
    before_s, before = [cpu_s(worker.pid) for worker in workers], log_lines(child)
    await asyncio.sleep(AWAY_S)
    used_s = [cpu_s(w.pid) - was_s for w, was_s in zip(workers, before_s, strict=True)]
    lines = log_lines(child) - before
    server.start()
    back_s = mono_s()
    first = await stage.submit(handlers.nap.options(band="critical"), 0)
    assert await stage.ended(first) == ["SUCCEEDED"]
    assert mono_s() - back_s < 5
    assert set(await stage.ended(*handles, *through)) == {"SUCCEEDED"}
    assert [worker.exit_code for worker in workers] == [None, None]
    assert max(used_s) < 0.3
    assert lines <= 2 * AWAY_S * len(workers) + 4
    for handle in through:  # they ended while Redis was away, and their outcomes were held
        assert len(journal.lines("start", handle.id)) == 1
    infos = [await handle.info() for handle in (*handles, *through)]
    assert {(info.attempt, info.crashes) for info in infos} == {(1, 0)}


def log_lines(child: Children) -> int:
    return len(child.log.read_text().splitlines())


async def test_five_restarts_in_a_row_do_not_stop_a_worker(
    stage: Stage, server: Server, child: Callable[..., Child]
) -> None:
    worker = child(**SHORT)
    async with stage.scheduler():
        handles = [await stage.submit(handlers.nap, 0.3) for _ in range(10)]
        for _ in range(5):
            server.kill()
            server.start()
            await asyncio.sleep(0.2)
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert worker.exit_code is None


async def test_a_server_that_hangs_for_longer_than_any_time_limit_is_waited_for(
    stage: Stage, server: Server, child: Callable[..., Child], journal: Journal
) -> None:
    worker = child(**SHORT)
    handle = await stage.submit(handlers.nap, 0.5)
    await journal.wait_for("start")
    server.freeze()
    await asyncio.sleep(AWAY_S)
    server.thaw()
    later = await stage.submit(handlers.nap, 0)
    assert await stage.ended(handle, later) == ["SUCCEEDED"] * 2
    assert worker.exit_code is None
    # A reclaim that was under way may be carried out after the hang, before any renewal.
    assert len(journal.lines("start", handle.id)) <= 2


async def test_h4_a_stop_while_redis_is_away_ends_soon_after_the_grace_time(
    stage: Stage, server: Server, child: Callable[..., Child], journal: Journal
) -> None:
    idle = child(**SHORT, shutdown_grace=0.5)
    busy = child(**SHORT, shutdown_grace=0.5)
    handles = [await stage.submit(handlers.nap, 60) for _ in range(8)]
    held = await stage.submit(handlers.nap.options(band="critical"), 0.2)
    await journal.wait_for("start", 8)
    server.kill()
    await asyncio.sleep(0.3)
    told_s = mono_s()
    for worker in (idle, busy):
        worker.signal(signal.SIGTERM)
    assert [await idle.ended(), await busy.ended()] == [0, 0]
    assert mono_s() - told_s < 0.5 + 5
    server.start()
    for handle in (*handles, held):
        await handle.cancel()
    async with stage.worker(handlers.REGISTRY, visibility_timeout=0.5, reaper_interval=0.1):
        await stage.ended(*handles, held)


async def test_a_hurried_stop_while_redis_is_away_ends_within_two_seconds(
    stage: Stage, server: Server, child: Callable[..., Child], journal: Journal
) -> None:
    worker = child(**SHORT, shutdown_grace=60)
    handle = await stage.submit(handlers.nap, 60)
    await journal.wait_for("start")
    server.kill()
    worker.signal(signal.SIGTERM)
    await asyncio.sleep(0.1)
    second_s = mono_s()
    worker.hurry()
    assert await worker.ended() == 1
    assert mono_s() - second_s < 2
    server.start()
    await handle.cancel()
    async with stage.worker(handlers.REGISTRY, visibility_timeout=0.5, reaper_interval=0.1):
        assert await stage.ended(handle) == ["CANCELLED"]


async def test_a_child_that_dies_while_redis_is_away_is_replaced_and_work_goes_on(
    stage: Stage, server: Server, crew: Callable[..., Crew]
) -> None:
    supervisor = crew(**SHORT)
    await stage.ended(await stage.submit(handlers.nap, 0))
    [first] = supervisor.children()
    server.kill()
    os.kill(first, signal.SIGKILL)
    await eventually("a new child", lambda: set(supervisor.children()) - {first})
    await eventually(
        "it to wait for Redis",
        lambda: any("waits for Redis" in line for line in supervisor.lines()),
    )
    server.start()
    back_s = mono_s()
    assert await stage.ended(await stage.submit(handlers.nap, 0)) == ["SUCCEEDED"]
    assert mono_s() - back_s < 5
    server.kill()
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0
    assert gone(first)
    server.start()
