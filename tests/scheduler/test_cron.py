"""Recurring tasks: each slot is fired once, whatever schedulers do; missed ones as was asked."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from crash.points import FIRING, Point
from dtq_core import reads
from dtq_core.cron import CronSchedule, Misfire, Overlap, encode_schedule
from dtq_core.keyspace import Keyspace
from dtq_scheduler.cron import Cron
from dtq_tasks import Context
from support.programs import TESTS, clean_environment, frozen
from worker.stage import Stage, eventually

EVERY_SECOND = "* * * * * *"
MINUTE_MS = 60_000


@pytest.fixture(autouse=True)
async def _ended_by_hand(stage: Stage) -> AsyncIterator[None]:
    """Tasks of schedules are in no ledger; what is left of them is purged."""
    yield
    for name in await stage.raw.keys(f"{stage.keys.prefix}:*"):
        await stage.raw.delete(name)


async def put(stage: Stage, name: str, first_ms: int, **changes: Any) -> None:
    """Store a schedule that fires first at a time, past or future."""
    schedule = CronSchedule(task=name, **{"cron": "* * * * *", **changes})
    call = stage.client.store.calls[0].cron_put(None, name, encode_schedule(schedule), first_ms)
    await stage.client.store.run(call)


async def now_ms(stage: Stage) -> int:
    return await stage.client.store.read(reads.now_ms())


async def passed(stage: Stage, name: str) -> bool:
    return bool(await stage.raw.hexists(stage.keys.cron_state, f"{name}:slot"))


async def slots_of(stage: Stage, name: str) -> list[int]:
    """The slots that were fired, of the idempotency keys of their tasks."""
    start = f"{stage.keys.prefix}:idem:cron:{name}:"
    return sorted(
        int(key.decode().removeprefix(start)) for key in await stage.raw.keys(f"{start}*")
    )


def counted(stage: Stage, **declaration: Any) -> Counter[int]:
    """A recurring task, and how often each of its slots ran."""
    runs: Counter[int] = Counter()

    @stage.task(name="tick", **declaration)
    async def tick(ctx: Context) -> None:
        assert ctx.slot is not None
        runs[int(ctx.slot.timestamp() * 1000)] += 1

    return runs


async def test_a_handler_that_declares_it_recurs_and_is_told_its_slot(stage: Stage) -> None:
    runs = counted(stage, cron=EVERY_SECOND)
    async with stage.worker(scheduler=False), stage.scheduler():
        await eventually("three slots", lambda: len(runs) >= 3)
    assert set(runs.values()) == {1}
    first, *_ = slots = sorted(runs)
    assert slots == [first + 1000 * n for n in range(len(slots))], "none is left out"


async def test_a_later_declaration_replaces_an_earlier_one_and_none_takes_it_away(
    stage: Stage,
) -> None:
    counted(stage, cron="0 0 1 1 *")
    async with stage.worker(scheduler=False):
        first = await stage.raw.zscore(stage.keys.cron_schedule, "tick")
    counted(stage, cron="0 0 2 1 *")
    async with stage.worker(scheduler=False):
        second = await stage.raw.zscore(stage.keys.cron_schedule, "tick")
    assert second == first + 86_400_000
    counted(stage)
    async with stage.worker(scheduler=False):
        assert await stage.raw.zcard(stage.keys.cron_schedule) == 0
        assert await stage.raw.hlen(stage.keys.cron) == 0


async def test_a_restarted_worker_keeps_the_next_slot_and_an_operators_pause(stage: Stage) -> None:
    counted(stage, cron="* * * * *")
    async with stage.worker(scheduler=False):
        pass
    await stage.raw.zadd(stage.keys.cron_schedule, {"tick": 12345})
    async with stage.worker(scheduler=False):
        assert await stage.raw.zscore(stage.keys.cron_schedule, "tick") == 12345
    await stage.raw.hset(stage.keys.cron_state, "tick:paused", 1)
    await stage.raw.zrem(stage.keys.cron_schedule, "tick")
    counted(stage, cron="*/2 * * * *")
    async with stage.worker(scheduler=False):
        assert await stage.raw.zcard(stage.keys.cron_schedule) == 0


MISSED = [
    (Misfire.SKIP, 1, "the last is late by less than the grace"),
    (Misfire.ONCE, 1, "the last one is made up"),
    (Misfire.ALL, 4, "each is made up"),
]


@pytest.mark.parametrize(("misfire", "count", "why"), MISSED)
async def test_j3_slots_that_were_missed_are_made_up_as_was_asked(
    misfire: Misfire, count: int, why: str, stage: Stage
) -> None:
    due = await now_ms(stage) // MINUTE_MS * MINUTE_MS
    await put(stage, "nightly", due - 3 * MINUTE_MS, misfire=misfire)
    async with stage.scheduler(misfire_grace=120):
        await eventually(
            "it to fire", lambda: stage.raw.hexists(stage.keys.cron_state, "nightly:slot")
        )
    slots = await slots_of(stage, "nightly")
    assert slots == [due - n * MINUTE_MS for n in reversed(range(count))], why
    assert await stage.raw.zscore(stage.keys.cron_schedule, "nightly") == due + MINUTE_MS


async def test_j3_a_slot_that_is_later_than_the_grace_is_skipped_where_that_was_asked(
    stage: Stage,
) -> None:
    due = await now_ms(stage) - 300 * 86_400_000
    await put(stage, "yearly", due, cron="0 0 1 1 *", misfire=Misfire.SKIP)
    async with stage.scheduler():
        await eventually(
            "it to pass", lambda: stage.raw.hexists(stage.keys.cron_state, "yearly:slot")
        )
    assert await slots_of(stage, "yearly") == []


async def test_j3_an_earlier_task_blocks_the_next_only_where_that_was_asked_and_it_waits(
    stage: Stage,
) -> None:
    for overlap in Overlap:
        await put(stage, overlap, 1000, cron=EVERY_SECOND, overlap=overlap)
    async with stage.scheduler():
        await eventually("some slots", lambda: _fired(stage, "allow", 3))
        assert len(await slots_of(stage, "skip")) == 1, "nobody has run it"
        (task_id,) = [
            value
            for field, value in (await stage.raw.hgetall(stage.keys.cron_state)).items()
            if field == b"skip:task"
        ]
        await stage.client.cancel(task_id.decode())
        await eventually("the next slot", lambda: _fired(stage, "skip", 2))


async def _fired(stage: Stage, name: str, count: int) -> bool:
    return len(await slots_of(stage, name)) >= count


async def test_j4_one_that_is_broken_or_never_fires_again_stops_no_other(stage: Stage) -> None:
    await stage.raw.hset(stage.keys.cron, "broken", b"\xff")
    await stage.raw.hset(stage.keys.cron, "never", b'{"task":"t","cron":"0 0 30 2 *"}')
    await stage.raw.zadd(stage.keys.cron_schedule, {"broken": 1, "never": 2, "gone": 3})
    await put(stage, "good", 1000, cron=EVERY_SECOND)
    async with stage.scheduler():
        await eventually("the good one", lambda: _fired(stage, "good", 2))
        assert await stage.raw.zrange(stage.keys.cron_schedule, 0, -1) == [b"good"]


async def test_what_is_due_is_found_among_many_that_are_not(stage: Stage) -> None:
    future = await now_ms(stage) + 3_600_000
    for part in range(10):
        names = {f"s{part}-{n}": future for n in range(500)}
        await stage.raw.zadd(stage.keys.cron_schedule, names)
    await put(stage, "due", 1000, cron=EVERY_SECOND)
    async with stage.scheduler():
        await eventually("it to fire", lambda: _fired(stage, "due", 2))


async def test_j2_a_slot_that_another_scheduler_has_fired_is_not_fired_again(stage: Stage) -> None:
    """Two that both believe to lead, at the same moment, again and again."""
    await put(stage, "both", await now_ms(stage), cron=EVERY_SECOND)
    keys: Keyspace = stage.keys
    store = stage.client.store
    twins = [Cron(store, keys, store.calls[0]) for _ in range(2)]
    for _ in range(60):
        await asyncio.gather(*(twin.fire_due() for twin in twins))
        await asyncio.sleep(0.05)
    slots = await slots_of(stage, "both")
    assert len(slots) >= 3
    submitted = await stage.raw.hget(stage.keys.stats("default"), "QUEUED")
    assert int(submitted) == len(slots)


@pytest.fixture
def scheduler_process(stage: Stage) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    made: list[subprocess.Popen[bytes]] = []

    def start(failpoints: str = "") -> subprocess.Popen[bytes]:
        given = {k: v for k, v in asdict(stage.settings(leader_lease=0.5)).items() if v}
        env = {f"DTQ_{name.upper()}": str(value) for name, value in given.items()}
        made.append(
            subprocess.Popen(
                [sys.executable, "-m", "support.schedule"],
                env=clean_environment(TESTS) | env | {"DTQ_FAILPOINTS": failpoints},
                stdout=subprocess.DEVNULL,
            )
        )
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()


@pytest.mark.parametrize("point", FIRING, ids=lambda point: point.name)
async def test_c1_a_scheduler_killed_while_it_fires_leaves_no_slot_out_and_none_twice(
    point: Point, stage: Stage, scheduler_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    runs = counted(stage, cron=EVERY_SECOND, misfire="all")
    async with stage.worker(scheduler=False):
        victim = scheduler_process(point.armed)
        await eventually("it to be killed", lambda: victim.poll() is not None)
        scheduler_process()
        await eventually("three more slots", lambda: len(runs) >= 5)
    slots = sorted(runs)
    assert slots == [slots[0] + 1000 * n for n in range(len(slots))]
    assert set(runs.values()) == {1}


async def test_j2_a_leader_that_was_frozen_and_thawed_fires_nothing_twice(
    stage: Stage, scheduler_process: Callable[..., subprocess.Popen[bytes]]
) -> None:
    runs = counted(stage, cron=EVERY_SECOND, misfire="all")
    process = scheduler_process()
    await eventually("it to lead", lambda: stage.raw.exists(stage.keys.leader))
    async with stage.worker(scheduler=False), stage.scheduler():
        await eventually("a slot", lambda: len(runs) >= 1)
        with frozen(process.pid):
            await eventually("slots without it", lambda: len(runs) >= 3)
        await eventually("slots with it", lambda: len(runs) >= 5)
        assert process.poll() is None, "it stands by again"
    slots = sorted(runs)
    assert slots == [slots[0] + 1000 * n for n in range(len(slots))]
    assert set(runs.values()) == {1}


async def test_what_is_made_up_does_not_overlap_itself_where_that_was_not_asked(
    stage: Stage,
) -> None:
    due = await now_ms(stage) // MINUTE_MS * MINUTE_MS
    first = due - 5 * MINUTE_MS
    await put(stage, "alone", first, misfire=Misfire.ALL, overlap=Overlap.SKIP)
    async with stage.scheduler():
        await eventually("it to fire", lambda: passed(stage, "alone"))
    assert len(await slots_of(stage, "alone")) == 1


async def test_a_schedule_that_rested_fires_again_once_it_is_stored_again(stage: Stage) -> None:
    counted(stage, cron=EVERY_SECOND)
    async with stage.worker(scheduler=False):
        await stage.raw.zrem(stage.keys.cron_schedule, "tick")
    async with stage.worker(scheduler=False):
        assert await stage.raw.zcard(stage.keys.cron_schedule) == 1


@pytest.mark.parametrize("score", ["-inf", "+inf", "1000.5", "-7"])
async def test_a_score_by_hand_neither_ends_the_scheduler_nor_keeps_it_busy(
    score: str, stage: Stage
) -> None:
    await put(stage, "odd", 1000)
    await stage.raw.execute_command("ZADD", stage.keys.cron_schedule, score, "odd")
    await put(stage, "good", 1000, cron=EVERY_SECOND)
    async with stage.scheduler(scheduler_tick=0.5):
        await eventually("the good one", lambda: _fired(stage, "good", 2))
        before = (await stage.raw.info("commandstats"))["cmdstat_evalsha"]["calls"]
        await eventually("one more slot", lambda: _fired(stage, "good", 4))
        after = (await stage.raw.info("commandstats"))["cmdstat_evalsha"]["calls"]
    assert 0 < after - before < 100, "a look every half second, and one for each slot"


async def test_foreign_keys_of_schedules_keep_no_worker_from_its_tasks(stage: Stage) -> None:
    @stage.task
    async def handler() -> int:
        return 1

    await stage.raw.set(stage.keys.cron, "foreign")
    async with stage.worker(scheduler=False):
        handle = await stage.client.submit(handler)
        assert await handle.result(10) == 1
