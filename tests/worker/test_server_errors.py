"""The server refuses, forgets or throws out: no crash, no loss, no attempt spent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from dtq_tasks import Context
from worker import handlers
from worker.fixtures import Children, Deployment
from worker.server import Server
from worker.stage import Stage, eventually, staged

SHORT = {"visibility_timeout": 0.5, "reaper_interval": 0.1, "connect_timeout": 1.0}

REFUSED_S = 1.0
"""How long a server refuses: two visibility timeouts."""


@pytest.fixture
async def stage(server: Server) -> AsyncIterator[Stage]:
    async with staged(server.url) as made:
        yield made


@contextlib.asynccontextmanager
async def every(seconds: float, work: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """Do something again and again for as long as the block lasts."""

    async def go_on() -> None:
        while True:
            await work()
            await asyncio.sleep(seconds)

    going_on = asyncio.create_task(go_on())
    try:
        yield
    finally:
        going_on.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await going_on


async def mixed_load(stage: Stage, count: int) -> list[str]:
    """Run tasks of every fate, and return how they ended."""

    @stage.task(retry=[0.02], max_attempts=2)
    async def handler(n: int, ctx: Context) -> int:
        await asyncio.sleep(0.002)
        if n % 5 == 0 and ctx.attempt == 1:
            raise ValueError("once")
        if n % 7 == 0:
            raise RuntimeError("always")
        return n

    handles = await stage.submit_many(handler, [(n,) for n in range(count)])
    delayed = await stage.submit_many(handler.options(delay=0.2), [(n,) for n in range(20)])
    doomed = await stage.submit_many(handler.options(delay=600), [(n,) for n in range(20)])
    for handle in doomed:
        assert await handle.cancel() == "cancelled"
    return await stage.ended(*handles, *delayed, *doomed, limit_s=30)


async def test_a_script_cache_that_is_emptied_again_and_again_is_never_noticed(
    stage: Stage,
) -> None:
    async with stage.worker(), every(0.1, stage.raw.script_flush):
        statuses = await mixed_load(stage, 300)
    assert statuses.count("CANCELLED") == 20
    assert statuses.count("DEAD_LETTERED") == 43 + 3
    assert statuses.count("SUCCEEDED") == 257 + 17


async def test_connections_that_are_killed_again_and_again_lose_nothing(stage: Stage) -> None:
    async def kill_all() -> None:
        await stage.raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    @stage.task(max_attempts=1)
    async def handler(n: int) -> int:
        await asyncio.sleep(0.05)
        return n

    async with stage.worker():
        handles = await stage.submit_many(handler, [(n,) for n in range(100)])
        async with every(0.1, kill_all):
            await asyncio.sleep(1)
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    infos = [await handle.info() for handle in handles]
    assert {(info.attempt, info.crashes) for info in infos} == {(1, 0)}


async def flip(server: Server) -> None:
    """Make the server a replica for longer than the visibility timeout."""
    server.command("REPLICAOF", "127.0.0.1", "1")
    await asyncio.sleep(REFUSED_S)
    server.command("REPLICAOF", "NO", "ONE")


async def fill(server: Server) -> None:
    """Have the server refuse all that may need memory."""
    server.command("CONFIG", "SET", "maxmemory", "1")
    await asyncio.sleep(REFUSED_S)
    server.command("CONFIG", "SET", "maxmemory", "0")


async def lock_out(server: Server) -> None:
    """Take from the workers every right but that to connect."""
    server.command("ACL", "SETUSER", "default", "-@all", "+acl", "+ping")
    await asyncio.sleep(REFUSED_S)
    server.command("ACL", "SETUSER", "default", "+@all")


async def test_a_server_that_refuses_to_write_for_a_while_costs_no_attempt_and_no_outcome(
    deploy: Callable[..., contextlib.AbstractAsyncContextManager[Deployment]],
) -> None:
    async def survive(refuse: Callable[[Server], Awaitable[None]]) -> None:
        async with deploy(refuse.__name__) as deployment, deployment.stage.scheduler():
            await refuse_under_load(deployment, refuse)

    await asyncio.gather(survive(flip), survive(fill), survive(lock_out))


async def refuse_under_load(
    deployment: Deployment, refuse: Callable[[Server], Awaitable[None]]
) -> None:
    server, stage, child, journal = deployment
    workers = [child(**SHORT), child(**SHORT)]
    nap, doze = handlers.nap.options(max_attempts=1), handlers.doze.options(max_attempts=1)
    handles = [await stage.submit(nap, seconds) for seconds in (0.3, 0.3, 0.6, 1.5, 1.5)]
    handles += [await stage.submit(doze, 0.6)]
    handles += [await stage.submit(handlers.nap.options(delay=0.3, max_attempts=1), 0)]
    await journal.wait_for("start", 6)
    await refuse(server)
    later = await stage.submit(nap, 0)
    assert set(await stage.ended(*handles, later)) == {"SUCCEEDED"}, refuse
    assert [worker.exit_code for worker in workers] == [None, None], refuse
    infos = [await handle.info() for handle in handles]
    assert {(info.attempt, info.crashes) for info in infos} == {(1, 0)}, refuse
    assert len(journal.lines("start")) == 8, refuse


@pytest.mark.parametrize("what", ["stream", "group"])
async def test_a_stream_or_group_that_is_deleted_under_an_idle_worker_comes_back(
    stage: Stage, what: str
) -> None:
    @stage.task
    async def handler(n: int) -> int:
        return n

    stream = stage.keys.stream("default", "normal")
    async with stage.worker(**SHORT), stage.worker(**SHORT):
        for n in range(3):
            assert await (await stage.submit(handler, n)).result(10) == n
            if what == "stream":
                await stage.raw.delete(stream)
            else:
                await stage.raw.xgroup_destroy(stream, "workers")
        handles = await stage.submit_many(handler, [(n,) for n in range(20)])
        assert [await handle.result(10) for handle in handles] == list(range(20))


async def test_tasks_submitted_before_any_worker_ever_ran_all_run_once(stage: Stage) -> None:
    runs: list[int] = []

    @stage.task
    async def handler(n: int) -> None:
        runs.append(n)

    bands = ["critical", "high", "normal", "low"]
    for n in range(20):
        await stage.submit(handler.options(band=bands[n % 4]), n)
    async with stage.worker():
        await eventually("all to run", lambda: len(runs) == 20)
    assert sorted(runs) == list(range(20))


async def test_a_server_with_too_few_connections_slows_down_and_breaks_nothing(
    stage: Stage, server: Server
) -> None:
    @stage.task(max_attempts=1)
    async def handler(n: int) -> int:
        await asyncio.sleep(0.01)
        return n

    async with stage.worker(**SHORT):
        handles = await stage.submit_many(handler, [(n,) for n in range(100)])
        async with server.connection() as admin:
            await admin.execute_command("CONFIG", "SET", "maxclients", "4")
            await admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(1)
            await admin.execute_command("CONFIG", "SET", "maxclients", "1000")
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    infos = [await handle.info() for handle in handles]
    assert {(info.attempt, info.crashes) for info in infos} == {(1, 0)}


async def test_an_idle_worker_waits_longer_than_a_command_may_take_and_logs_nothing(
    stage: Stage, child: Children
) -> None:
    child(connect_timeout=0.3)
    await eventually("its start", lambda: stage.raw.zcard(stage.keys.workers))
    await asyncio.sleep(1.3)
    [line] = child.log.read_text().splitlines()
    assert "worker started" in line


async def test_a_server_that_closes_idle_connections_is_not_noticed(
    stage: Stage, server: Server
) -> None:
    @stage.task
    async def handler() -> str:
        return "ran"

    server.command("CONFIG", "SET", "timeout", "1")
    async with stage.worker(**SHORT):
        assert await (await stage.submit(handler)).result(10) == "ran"
        await asyncio.sleep(1.2)
        assert await (await stage.submit(handler)).result(10) == "ran"
