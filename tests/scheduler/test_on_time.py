"""The scheduler is told of what is due before all others; it need not look again and again.

The longest pause between two of its looks is far longer than any of these tests waits.
"""

from __future__ import annotations

import asyncio

from dtq_tasks import Retry
from worker.stage import Stage, eventually

SELDOM = {"scheduler_tick": 60.0, "leader_lease": 60.0}


async def test_a_task_that_is_delayed_while_the_scheduler_sleeps_starts_in_time(
    stage: Stage,
) -> None:
    @stage.task
    async def handler() -> int:
        return 1

    async with stage.worker(scheduler=False), stage.scheduler(**SELDOM):
        await eventually("a leader", lambda: stage.raw.exists(stage.keys.leader))
        later = await stage.submit(handler.options(delay=30))
        for delay in (0.3, 0.1, 0.2):
            assert await (await stage.submit(handler.options(delay=delay))).result(10) == 1
        await later.cancel()


async def test_a_retry_starts_in_time(stage: Stage) -> None:
    @stage.task(max_attempts=3)
    async def handler() -> None:
        raise Retry(after=0.2)

    async with stage.worker(scheduler=False), stage.scheduler(**SELDOM):
        await eventually("a leader", lambda: stage.raw.exists(stage.keys.leader))
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert len(await handle.attempts()) == 3


async def test_a_scheduler_that_hears_nothing_looks_all_the_same(stage: Stage) -> None:
    @stage.task
    async def handler() -> int:
        return 1

    async with stage.worker(scheduler=False), stage.scheduler(scheduler_tick=0.1):
        await eventually("a leader", lambda: stage.raw.exists(stage.keys.leader))

        async def listens() -> bool:
            return bool((await stage.raw.pubsub_numsub(stage.keys.due))[0][1])

        await eventually("it to listen", listens)
        await stage.raw.execute_command("CLIENT KILL TYPE PUBSUB")
        for _ in range(3):
            assert await (await stage.submit(handler.options(delay=0.05))).result(10) == 1


async def test_only_the_leader_listens(stage: Stage) -> None:
    async with stage.scheduler(), stage.scheduler(), stage.scheduler():
        await eventually("a leader", lambda: stage.raw.exists(stage.keys.leader))

        async def one() -> bool:
            return bool((await stage.raw.pubsub_numsub(stage.keys.due))[0][1] == 1)

        await eventually("it to listen", one)
        await asyncio.sleep(0.2)
        assert await one()


async def test_many_hints_at_once_make_one_look(stage: Stage) -> None:
    async with stage.scheduler(scheduler_tick=5, leader_lease=60):
        await eventually("it to listen", lambda: _listeners(stage))
        before = await _calls(stage)
        async with stage.raw.pipeline(transaction=False) as pipe:
            for _ in range(2000):
                pipe.publish(stage.keys.due, "0")
            await pipe.execute()
        await eventually("it to sleep again", lambda: _sleeps(stage))
        assert 0 < await _calls(stage) - before < 500


async def _listeners(stage: Stage) -> bool:
    return bool((await stage.raw.pubsub_numsub(stage.keys.due))[0][1])


async def _sleeps(stage: Stage) -> bool:
    """Whether no script was called for longer than a look takes."""
    before = await _calls(stage)
    await asyncio.sleep(0.1)
    return await _calls(stage) == before


async def _calls(stage: Stage) -> int:
    return int((await stage.raw.info("commandstats"))["cmdstat_evalsha"]["calls"])
