"""A task that has not started when its TTL ends never starts, wherever it waits."""

from __future__ import annotations

import asyncio

from worker.stage import Stage, eventually


async def test_tasks_expire_while_they_are_queued_delayed_or_retrying(stage: Stage) -> None:
    runs: list[str] = []

    @stage.task(retry=[600], max_attempts=2)
    async def handler(kind: str) -> None:
        runs.append(kind)
        raise ValueError("again")

    async with stage.worker():
        retrying = await stage.submit(handler.options(ttl=0.4), "retrying")
        await eventually("a retry", lambda: stage.has_status(retrying, "RETRYING"))
    queued = await stage.submit(handler.options(ttl=0.2), "queued")
    delayed = await stage.submit(handler.options(ttl=0.2, delay=0.1), "delayed")
    await asyncio.sleep(0.25)  # nobody promotes
    async with stage.scheduler():
        assert await stage.ended(queued, delayed, retrying) == ["EXPIRED"] * 3
    async with stage.worker():
        await asyncio.sleep(0.1)
    assert runs == ["retrying"]
    for handle in (queued, delayed, retrying):
        info = await handle.info()
        assert info.finished_at is not None
        assert info.expires_at is not None
        assert info.finished_at >= info.expires_at


async def test_without_a_scheduler_a_task_whose_ttl_has_ended_is_not_started_either(
    stage: Stage,
) -> None:
    runs = 0

    @stage.task
    async def handler() -> None:
        nonlocal runs
        runs += 1

    handle = await stage.submit(handler.options(ttl=0.05))
    await asyncio.sleep(0.1)
    async with stage.worker(scheduler=False):
        assert await stage.ended(handle) == ["EXPIRED"]
    assert runs == 0


async def test_a_ttl_that_ends_while_the_task_runs_ends_nothing(stage: Stage) -> None:
    @stage.task
    async def handler() -> str:
        await asyncio.sleep(0.4)
        return "done"

    async with stage.worker():
        assert await (await stage.submit(handler.options(ttl=0.2))).result(10) == "done"


async def test_a_task_due_at_its_expiry_runs_or_expires_but_not_both(stage: Stage) -> None:
    runs: list[int] = []

    @stage.task
    async def handler(n: int) -> None:
        runs.append(n)

    async with stage.worker(concurrency=50):
        handles = [
            await stage.submit(handler.options(delay=0.1, ttl=0.1 + n % 4 / 200), n)
            for n in range(60)
        ]
        statuses = await stage.ended(*handles)
    assert sorted(runs) == [n for n, status in enumerate(statuses) if status == "SUCCEEDED"]
    assert set(statuses) <= {"SUCCEEDED", "EXPIRED"}


async def test_many_expire_in_one_look(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    await stage.submit_many(handler.options(delay=0.01, ttl=0.02), [()] * 1_200)
    await asyncio.sleep(0.05)
    async with stage.scheduler():
        await eventually("the end of all", lambda: _none_left(stage))


async def _none_left(stage: Stage) -> bool:
    left: int = await stage.raw.zcard(stage.keys.expiry)
    return left == 0
