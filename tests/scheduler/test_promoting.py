"""What is due moves to its stream: in time, never early, once, and whatever else lies about."""

from __future__ import annotations

import asyncio

from dtq_tasks import Context
from worker.server import Server
from worker.stage import Stage, eventually, staged


async def test_a_delayed_task_and_a_retry_run_when_they_are_due_and_not_before(
    stage: Stage,
) -> None:
    early: list[float] = []

    @stage.task(retry=[0.15], max_attempts=2)
    async def handler(ctx: Context) -> int:
        due_ms = int(await stage.raw.hget(stage.keys.task(ctx.id), "due_ms"))
        seconds, microseconds = await stage.raw.time()
        early.append(due_ms - (seconds * 1000 + microseconds / 1000))
        if ctx.attempt == 1:
            raise ValueError("again")
        return ctx.attempt

    async with stage.worker(concurrency=50):
        handles = [await stage.submit(handler.options(delay=n / 100)) for n in range(5, 25)]
        results = [await handle.result(10) for handle in handles]
    assert results == [2] * 20
    assert len(early) == 40
    assert max(early) < 1  # the due time is a whole millisecond, as Redis counts


async def test_what_is_not_due_stays_where_it_is(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    async with stage.worker():
        far = await stage.submit(handler.options(delay=600))
        near = await stage.submit(handler.options(delay=0.1))
        await stage.ended(near)
        assert await far.status() == "SCHEDULED"
        assert await far.cancel() == "cancelled"


async def test_a_backlog_of_many_due_tasks_is_promoted_once_each(stage: Stage) -> None:
    runs: list[str] = []

    @stage.task
    async def handler(ctx: Context) -> None:
        runs.append(ctx.id)

    handles = await stage.submit_many(handler.options(delay=0.01), [()] * 1_300)
    await asyncio.sleep(0.1)
    async with stage.worker(concurrency=100), stage.scheduler(), stage.scheduler():
        await eventually("all to run", lambda: len(runs) >= len(handles))
    assert sorted(runs) == sorted(handle.id for handle in handles)


async def test_bad_members_are_moved_aside_and_those_behind_them_go_on(stage: Stage) -> None:
    @stage.task(retry=[0.05], max_attempts=2)
    async def handler(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ValueError("again")

    keys, raw = stage.keys, stage.raw
    ended = await stage.submit(handler)
    await ended.cancel()
    for schedule in (keys.delay_schedule, keys.retry_schedule):
        await raw.zadd(schedule, {"": 1, "no record": 2, ended.id: 3, "string": 4, "garbled": 5})
    await raw.set(keys.task("string"), "a foreign value")
    await raw.hset(keys.task("garbled"), mapping={"status": "SCHEDULED", "attempt": "many"})
    async with stage.worker():
        good = await stage.submit(handler.options(delay=0.05))
        assert await good.result(10) is None
    assert await ended.status() == "CANCELLED"
    aside = {fields[b"id"] for _, fields in await raw.xrange(keys.dlq)}
    assert aside == {b"string", b"garbled"}
    await raw.delete(keys.task("string"), keys.task("garbled"))


async def test_a_task_of_a_queue_that_is_not_sound_waits_and_holds_up_no_other(
    stage: Stage,
) -> None:
    @stage.task
    async def handler() -> None: ...

    blocked = await stage.submit(handler.options(queue="bad", delay=0.05))
    wake = stage.keys.wake("bad")
    await stage.raw.set(wake, "a foreign value")
    async with stage.worker():
        good = await stage.submit(handler.options(delay=0.1))
        assert await good.result(10) is None
        assert await blocked.status() == "SCHEDULED"
    await stage.raw.delete(wake)
    assert await blocked.cancel() == "cancelled"


async def test_a5_a_record_outlives_any_delay_retry_run_and_wait_however_short_its_retention(
    redis_url: str,
) -> None:
    brief = {"result_ttl": 0.2, "retention": 0.2}
    async with staged(redis_url, **brief) as stage:
        runs: list[str] = []

        @stage.task(retry=[0.6], max_attempts=2)
        async def handler(kind: str, ctx: Context) -> None:
            if kind == "retried" and ctx.attempt == 1:
                raise ValueError("again")
            if kind == "long":
                await asyncio.sleep(0.8)
            runs.append(kind)

        await stage.submit(handler, "queued")
        await asyncio.sleep(0.6)
        async with stage.worker():
            await stage.submit(handler.options(delay=0.6), "delayed")
            await stage.submit(handler, "retried")
            await stage.submit(handler, "long")
            await eventually("all to run", lambda: len(runs) == 4)
        assert sorted(runs) == ["delayed", "long", "queued", "retried"]
        await eventually("the end of their retention", lambda: _no_records(stage))
        stage.accepted.clear()


async def _no_records(stage: Stage) -> bool:
    return not [key async for key in stage.raw.scan_iter(stage.keys.task("*"))]


async def test_what_is_scheduled_survives_a_restart_of_redis_and_of_the_scheduler(
    server: Server,
) -> None:
    async with staged(server.url) as stage:

        @stage.task(retry=[0.3], max_attempts=2)
        async def handler(ctx: Context) -> int:
            if ctx.attempt == 1:
                raise ValueError("again")
            return ctx.attempt

        async with stage.worker():
            retrying = await stage.submit(handler)
            await eventually("a retry", lambda: stage.has_status(retrying, "RETRYING"))
        delayed = await stage.submit(handler.options(delay=0.2))
        server.kill()
        server.start()
        async with stage.worker():
            assert [await delayed.result(10), await retrying.result(10)] == [2, 2]
