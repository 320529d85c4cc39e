"""The leading scheduler brings back what nothing leads to any more, by itself."""

from __future__ import annotations

from worker.stage import Stage, eventually


async def test_a_task_whose_entry_vanished_is_run_all_the_same(stage: Stage) -> None:
    @stage.task
    async def handler() -> int:
        return 1

    handle = await stage.submit(handler)
    await stage.raw.delete(stage.keys.stream("default", "normal"))
    async with stage.worker(scheduler=False), stage.scheduler(verify_interval=0.1):
        assert await handle.result(10) == 1
    events = await stage.raw.xrange(stage.keys.events)
    assert [fields[b"reason"] for _, fields in events if fields[b"type"] == b"TASK_REPAIRED"] == [
        b"its entry was gone"
    ]
    assert not await stage.raw.exists(stage.keys.audit), "no operator did it"


async def test_a_task_that_is_in_no_schedule_is_scheduled_again(stage: Stage) -> None:
    @stage.task
    async def handler() -> int:
        return 1

    handle = await stage.submit(handler.options(delay=0.2))
    await stage.raw.delete(stage.keys.delay_schedule)
    async with stage.worker(scheduler=False), stage.scheduler(verify_interval=0.1):
        assert await handle.result(10) == 1


async def test_other_disagreements_are_left_to_an_operator(stage: Stage) -> None:
    @stage.task
    async def handler() -> int:
        return 1

    handle = await stage.submit(handler)
    await stage.raw.delete(stage.keys.stream("default", "normal"))
    orphans = stage.keys.attempts("f" * 32)
    await stage.raw.rpush(orphans, "{}")
    async with stage.scheduler(verify_interval=0.05):
        await eventually("a walk", lambda: stage.raw.exists(stage.keys.stream("default", "normal")))
    assert await stage.raw.pttl(orphans) == -1
    await stage.raw.delete(orphans)
    async with stage.worker(scheduler=False):
        assert await handle.result(10) == 1
