"""A scheduler is killed while it promotes: a task is in its schedule or queued, never both."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from crash.handlers import fail_once, work
from dtq import Handle, Status
from dtq_core.store import AsyncStore
from dtq_scheduler.promoter import Promoter
from support.eventually import eventually
from support.scene import WELL_UNDER_S, Scene

MANY = 1_200


def make_due(scene: Scene, schedule: str, *handles: Handle[Any]) -> None:
    """Let tasks be due now."""
    for handle in handles:
        keys = scene.hand.store.keys_of(handle.id)
        key = keys.delay_schedule if schedule == "delay" else keys.retry_schedule
        scene.hand.command("ZADD", key, "XX", 1, handle.id)


def scheduled(scene: Scene) -> int:
    keys = scene.hand.store.partitions.all
    count = scene.hand.command
    return sum(count("ZCARD", k.delay_schedule) + count("ZCARD", k.retry_schedule) for k in keys)


def delayed(scene: Scene) -> Handle[Any]:
    handle = scene.submit(work.options(delay=60))
    make_due(scene, "delay", handle)
    return handle


def failed_once(scene: Scene) -> Handle[Any]:
    handle = scene.submit(fail_once)
    scene.hand.retry(scene.hand.claim()[0])
    make_due(scene, "retry", handle)
    return handle


BOTH = pytest.mark.parametrize(
    ("made", "nth", "attempt"),
    [(failed_once, 1, 2), (delayed, 2, 1)],  # the schedules are served in this order
    ids=["retry", "delay"],
)


@BOTH
def test_killed_before_a_promotion(scene: Scene, made: Any, nth: int, attempt: int) -> None:
    handle = made(scene)
    before = handle.status()
    scene.scheduler(f"promote.before=kill@{nth}").killed()
    assert (handle.status(), scheduled(scene), scene.hand.entries()) == (before, 1, [])
    scene.crew()
    handle.result(timeout=WELL_UNDER_S)
    assert scene.starts(handle) == [attempt]


@BOTH
def test_killed_after_a_promotion(scene: Scene, made: Any, nth: int, attempt: int) -> None:
    handle = made(scene)
    scene.scheduler(f"promote.after=kill@{nth}").killed()
    assert (handle.status(), scheduled(scene)) == (Status.QUEUED, 0)
    assert scene.hand.entries() == [handle.id]
    scene.crew()
    handle.result(timeout=WELL_UNDER_S)
    assert scene.starts(handle) == [attempt]


def test_killed_between_two_batches(scene: Scene) -> None:
    handles = scene.submit_many(work.options(delay=60), MANY)
    make_due(scene, "delay", *handles)
    scene.scheduler("promote.after=kill@4").killed()  # retries, 500 tasks, retries, 500 tasks
    assert len(scene.hand.entries()) == 1_000
    scene.scheduler()
    eventually("the rest to be promoted", lambda: scheduled(scene) == 0)
    assert Counter(scene.hand.entries()) == Counter(handle.id for handle in handles)
    scene.hand.run_all(MANY)


@pytest.mark.parametrize("settings", [1, 3], indirect=True)
def test_schedulers_that_promote_the_same_batch_make_one_entry_of_each(scene: Scene) -> None:
    handles = scene.submit_many(work.options(delay=60), MANY)
    make_due(scene, "delay", *handles)

    async def promote_at_once() -> None:
        stores = [AsyncStore(scene.settings) for _ in range(4)]
        promoters = [Promoter(store, calls) for store in stores for calls in store.calls]
        await asyncio.gather(*(promoter.promote_due() for promoter in promoters))
        for store in stores:
            await store.close()

    asyncio.run(promote_at_once())
    assert scheduled(scene) == 0
    assert Counter(scene.hand.entries()) == Counter(handle.id for handle in handles)
    scene.hand.run_all(MANY)


def test_a_queued_task_that_is_still_in_its_schedule_is_not_queued_again(scene: Scene) -> None:
    """A scheduler that died between its two writes would have left it so."""
    handle = scene.submit(work, 7)
    scene.hand.command("ZADD", scene.hand.store.keys_of(handle.id).delay_schedule, 1, handle.id)
    scene.scheduler()
    eventually("the schedule to be cleared", lambda: scheduled(scene) == 0)
    assert scene.hand.entries() == [handle.id]
    scene.crew()
    assert handle.result(timeout=WELL_UNDER_S) == 7
    assert scene.starts(handle) == [1]


def test_an_entry_of_a_task_that_is_still_scheduled_is_absorbed(scene: Scene) -> None:
    handle = scene.submit(work.options(delay=60))
    stream = scene.hand.store.keys_of(handle.id).stream("default", "normal")
    scene.hand.command("XADD", stream, "*", "id", handle.id, "attempt", 1)
    scene.worker()
    eventually("the entry to be gone", lambda: not scene.hand.entries())
    assert (handle.status(), scene.absorbed(handle.id)) == (Status.SCHEDULED, 1)
    make_due(scene, "delay", handle)
    scene.scheduler()
    handle.result(timeout=WELL_UNDER_S)
    assert scene.starts(handle) == [1]
