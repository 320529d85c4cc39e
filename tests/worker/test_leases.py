"""A task is held by one worker at a time, for as long as that worker lives, and by it alone."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

from structlog.testing import capture_logs

from dtq_core.scripts import ADOPT, CLAIM, FINISH, RENEW, Script
from dtq_tasks import Context
from support.programs import frozen
from support.proxy import Fault, Proxy, is_command, runs
from worker import handlers
from worker.processes import Child, Journal
from worker.stage import Stage, eventually, staged

SHORT = {"visibility_timeout": 0.5, "reaper_interval": 0.1}
BANDS = [("default", "normal")]


async def steal(stage: Stage, thief: str) -> None:
    """Take whatever is pending, as a reaper would whose visibility timeout has passed."""
    store = stage.client.store
    taken = await store.run(store.calls[0].reclaim(thief, 10, 0, BANDS, [b"0-0"]))
    assert taken.claims


async def test_b1_a_task_that_takes_five_visibility_timeouts_runs_once(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    async with stage.scheduler():
        child(**SHORT)  # alone, with free slots, and later beside an idle one
        handles = [
            await stage.submit(handlers.nap, 2.5),
            await stage.submit(handlers.doze, 2.5),
            await stage.submit(handlers.nap.options(delay=2, timeout=5), 0),
        ]
        await asyncio.sleep(1.2)
        child(**SHORT)
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert len(journal.lines("start")) == 3
    assert {(await handle.info()).attempt for handle in handles} == {1}


async def test_a_handler_that_blocks_the_loop_for_three_visibility_timeouts_loses_nothing(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    child(**SHORT)
    blocked = [await stage.submit(handlers.nap, 1.0), await stage.submit(handlers.block, 1.6)]
    await journal.wait_for("start", 2)
    child(**SHORT)
    assert await stage.ended(*blocked) == ["SUCCEEDED"] * 2
    assert len(journal.lines("start")) == 2
    assert {(await handle.info()).attempt for handle in blocked} == {1}


async def test_a_handler_whose_lease_is_lost_is_told_and_its_outcome_is_refused(
    stage: Stage,
) -> None:
    cancelled, told, released = 0, 0, threading.Event()

    @stage.task
    async def on_loop() -> str:
        nonlocal cancelled
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled += 1
        return "a stale result"

    @stage.task
    def in_thread(ctx: Context) -> str:
        nonlocal told
        while not ctx.cancelled:
            released.wait(0.01)
        told += 1
        return "a stale result"

    async with stage.worker():
        handles = [await stage.submit(on_loop), await stage.submit(in_thread)]
        await stage.started(*handles)
        with capture_logs() as lines:
            await steal(stage, "thief")
            await eventually("both to be told", lambda: cancelled == told == 1)
    lost = [line for line in lines if line["event"].startswith("leases were lost")]
    assert sum(line["count"] for line in lost) == 2
    for handle in handles:
        info = await handle.info()
        assert (info.status, info.attempt, info.worker) == ("RUNNING", 2, "thief")
        assert await stage.raw.exists(stage.keys.result(handle.id)) == 0
        assert await handle.cancel() == "requested"
    async with stage.worker(visibility_timeout=0.5):
        assert await stage.ended(*handles) == ["CANCELLED"] * 2


async def test_a_worker_that_was_frozen_and_thawed_changes_nothing(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    first = child(**SHORT)
    long = await stage.submit(handlers.nap, 1.5)
    done_in_ice = await stage.submit(handlers.doze, 0.3)
    await journal.wait_for("start", 2)
    with frozen(first.pid):
        second = child(**SHORT)
        again = await journal.wait_for("start", 4)
    assert {line.pid for line in again[2:]} == {second.pid}
    assert await stage.ended(long, done_in_ice) == ["SUCCEEDED"] * 2
    assert [await long.result(1), await done_in_ice.result(1)] == [second.pid] * 2
    await journal.wait_for("cancelled")
    assert {line.pid for line in journal.lines("cancelled")} == {first.pid}
    attempts = await long.attempts()
    assert [(a.outcome, a.worker) for a in attempts] == [
        ("crashed", first.worker_id),
        ("succeeded", second.worker_id),
    ]
    later = await stage.submit(handlers.nap, 0)  # both work on
    assert await stage.ended(later) == ["SUCCEEDED"]
    assert first.exit_code is second.exit_code is None


async def test_a_worker_frozen_for_long_and_cleared_away_works_on_when_it_is_thawed(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    only = child(**SHORT)
    held = await stage.submit(handlers.nap, 1.0)
    await journal.wait_for("start")
    with frozen(only.pid):
        await eventually(
            "its description to run out",
            lambda: _missing(stage, only.worker_id),
        )
        await stage.client.store.abandon(only.worker_id)
    assert await stage.ended(held) == ["SUCCEEDED"]
    later = await stage.submit(handlers.nap, 0)
    assert await stage.ended(later) == ["SUCCEEDED"]


async def _missing(stage: Stage, worker_id: str) -> bool:
    return not await stage.raw.exists(stage.keys.worker(worker_id))


async def test_after_a_break_a_worker_lets_others_renew_before_it_takes_what_they_hold(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    other = child(**SHORT)
    handle = await stage.submit(handlers.nap, 1.8)
    await journal.wait_for("start")
    with Proxy(stage.url) as proxy:
        async with stage.worker(handlers.REGISTRY, redis_url=proxy.url, **SHORT):
            with frozen(other.pid):
                proxy.go_away()
                await asyncio.sleep(0.8)
                proxy.come_back()
                await asyncio.sleep(0.3)
            assert await handle.result(10) == other.pid
    info = await handle.info()
    assert (info.attempt, info.crashes) == (1, 0)


async def test_a_claim_whose_reply_is_lost_is_adopted_at_no_attempt(stage: Stage) -> None:
    runs_of: list[str] = []

    @stage.task(max_attempts=1)
    async def handler(ctx: Context) -> None:
        runs_of.append(ctx.id)

    with Proxy(stage.url) as proxy:
        async with stage.worker(redis_url=proxy.url):
            for fault in (Fault.CUT_REPLY, Fault.CUT_REQUEST):
                proxy.arm(fault, runs(CLAIM))
                handles = await stage.submit_many(handler, [()] * 4)
                assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
        assert proxy.hits == 2
    assert sorted(runs_of) == sorted(stage.accepted)
    for task_id in stage.accepted:
        info = await stage.client.get(task_id)
        assert (info.attempt, info.crashes) == (1, 0)


async def test_b5_a_lost_reply_of_any_other_call_changes_nothing(redis_url: str) -> None:
    faults = (Fault.CUT_REPLY, Fault.CUT_REQUEST)
    cases = [(script, fault) for script in (FINISH, RENEW, ADOPT) for fault in faults]
    await asyncio.gather(*(lose_one_reply(redis_url, *case) for case in cases))


async def lose_one_reply(redis_url: str, script: Script, fault: Fault) -> None:
    case, executed = (script.name, fault), 0
    async with staged(redis_url, visibility_timeout=0.6) as stage:

        @stage.task(max_attempts=1)
        async def handler() -> int:
            nonlocal executed
            executed += 1
            await asyncio.sleep(0.3)
            return executed

        with Proxy(redis_url) as proxy:
            async with stage.worker(redis_url=proxy.url):
                proxy.arm(fault, runs(script))
                handle = await stage.submit(handler)
                assert await handle.result(10) == 1, case
                await eventually("the fault", lambda: proxy.hits == 1)
        assert (await handle.info()).attempt == 1, case


async def test_an_idle_worker_whose_wait_is_cut_off_claims_again(stage: Stage) -> None:
    @stage.task
    async def handler() -> str:
        return "ran"

    with Proxy(stage.url) as proxy:
        async with stage.worker(redis_url=proxy.url):
            for fault in (Fault.CUT_REPLY, Fault.CUT_REQUEST, Fault.CUT_REPLY):
                proxy.arm(fault, is_command("BLPOP"))
                assert await (await stage.submit(handler)).result(10) == "ran"


async def test_a_worker_with_a_short_visibility_timeout_does_not_rob_one_with_a_long_one(
    stage: Stage,
) -> None:
    executed = 0

    @stage.task
    async def handler() -> int:
        nonlocal executed
        executed += 1
        await asyncio.sleep(1.5)
        return executed

    async with stage.worker(visibility_timeout=6):  # renews every two seconds
        handle = await stage.submit(handler)
        await stage.started(handle)
        await asyncio.sleep(0.6)
        async with stage.worker(visibility_timeout=0.5, reaper_interval=0.05):
            assert await handle.result(10) == 1
    assert (await handle.info()).attempt == 1


async def test_c3_what_a_killed_worker_held_runs_elsewhere_within_the_visibility_timeout_and_a_look(
    stage: Stage, child: Callable[..., Child], journal: Journal
) -> None:
    victim = child(**SHORT)
    handles = [await stage.submit(handlers.nap.options(timeout=3600), 0.7) for _ in range(3)]
    await journal.wait_for("start", 3)
    child(**SHORT)
    victim.signal(signal.SIGKILL)
    killed = await victim.ended()
    assert killed == -signal.SIGKILL
    last_word = max(line.at_s for line in journal.lines("start"))
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    restarts = journal.lines("start")[3:]
    assert len(restarts) == 3
    assert max(line.at_s for line in restarts) - last_word < 3
    assert {(await handle.info()).crashes for handle in handles} == {1}


async def test_c3_an_entry_that_stays_pending_on_a_live_worker_is_not_forgotten(
    stage: Stage,
) -> None:
    go_on = asyncio.Event()

    @stage.task
    async def occupant() -> None:
        await go_on.wait()

    @stage.task(max_attempts=1)
    async def handler() -> str:
        return "ran"

    async with stage.worker(**SHORT, concurrency=1) as worker:
        first = await stage.submit(occupant)
        await stage.started(first)
        forgotten = await stage.submit(handler)
        store = stage.client.store
        taken = await store.run(store.calls[0].claim(worker.id, 1, BANDS))
        assert [claim.task_id for claim in taken.claims] == [forgotten.id]
        go_on.set()
        assert await forgotten.result(10) == "ran"
        assert await first.status() == "SUCCEEDED"
    assert (await forgotten.info()).attempt == 1
