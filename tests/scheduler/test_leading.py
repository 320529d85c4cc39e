"""One scheduler leads at a time; if two do, for a moment, no task runs twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from dtq_core.clock import mono_s
from dtq_core.errors import RedisUnavailableError
from dtq_core.store import AsyncStore
from dtq_scheduler.leader import Leader
from dtq_tasks import Context
from support.programs import TESTS, clean_environment, frozen
from support.proxy import Proxy
from worker.stage import Stage, eventually

LEASE_S = 1.0


async def owner(stage: Stage) -> str:
    """Who leads; empty where nobody does."""
    text: bytes = await stage.raw.get(stage.keys.leader) or b""
    return text.decode().partition(" ")[0]


@pytest.fixture
def scheduler_process(stage: Stage) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts schedulers as processes, which end with the test."""
    made: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        given = {k: v for k, v in asdict(stage.settings(leader_lease=LEASE_S)).items() if v}
        env = {f"DTQ_{name.upper()}": str(value) for name, value in given.items()}
        made.append(
            subprocess.Popen(
                [sys.executable, "-m", "support.schedule"],
                env=clean_environment(TESTS) | env,
                stdout=subprocess.DEVNULL,
            )
        )
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()


def counted(stage: Stage) -> tuple[Any, list[str]]:
    """A task, and the ids of those that ran."""
    runs: list[str] = []

    @stage.task
    async def handler(ctx: Context) -> None:
        runs.append(ctx.id)

    return handler, runs


async def steady_load(stage: Stage, task: Any, seconds: float) -> None:
    """Submit tasks that become due one after another."""
    for n in range(int(seconds * 50)):
        await stage.submit(task.options(delay=0.1 + n / 50))


async def test_c1_after_the_leader_is_killed_another_leads_within_lease_and_tick(
    stage: Stage, scheduler_process: Callable[[], subprocess.Popen[bytes]]
) -> None:
    task, runs = counted(stage)
    process = scheduler_process()
    await eventually("the process to lead", lambda: owner(stage))
    async with stage.scheduler(), stage.worker(scheduler=False):
        await steady_load(stage, task, 1.5)
        await eventually("some to run", lambda: len(runs) > 5)
        process.kill()
        killed_s, first = mono_s(), await owner(stage)
        await eventually("another leader", lambda: _other(stage, first))
        assert mono_s() - killed_s < LEASE_S + 1
        await eventually("all to run", lambda: len(runs) >= len(stage.accepted))
    assert sorted(runs) == sorted(stage.accepted)


async def _other(stage: Stage, first: str) -> bool:
    return await owner(stage) not in {"", first}


async def test_a_leader_that_was_frozen_and_thawed_harms_nothing_and_stands_by(
    stage: Stage, scheduler_process: Callable[[], subprocess.Popen[bytes]]
) -> None:
    task, runs = counted(stage)
    process = scheduler_process()
    await eventually("the process to lead", lambda: owner(stage))
    first = await owner(stage)
    async with stage.scheduler(), stage.worker(scheduler=False):
        load = asyncio.create_task(steady_load(stage, task, 1))
        with frozen(process.pid):
            await eventually("another leader", lambda: _other(stage, first))
            second = await owner(stage)
        await load
        await eventually("all to run", lambda: len(runs) >= len(stage.accepted))
        await asyncio.sleep(0.1)
        assert await owner(stage) == second
        assert process.poll() is None
    assert sorted(runs) == sorted(stage.accepted)
    await eventually("the first to lead again", lambda: _is_owner(stage, first))


async def _is_owner(stage: Stage, name: str) -> bool:
    return await owner(stage) == name


async def test_two_that_both_believe_to_lead_promote_each_task_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, runs = counted(stage)

    async def always(_self: Leader) -> bool:
        return True

    monkeypatch.setattr(Leader, "leads", always)
    async with stage.scheduler(), stage.scheduler(), stage.scheduler(), stage.worker():
        await stage.submit_many(task.options(delay=0.1), [()] * 600)
        await steady_load(stage, task, 1)
        await eventually("all to run", lambda: len(runs) >= len(stage.accepted))
    assert sorted(runs) == sorted(stage.accepted)
    assert await stage.raw.hget(stage.keys.stats("default"), "absorbed") is None


async def test_a_lease_that_was_deleted_is_taken_again(stage: Stage) -> None:
    task, runs = counted(stage)
    async with stage.scheduler(), stage.scheduler(), stage.worker():
        await steady_load(stage, task, 1)
        for _ in range(10):
            await stage.raw.delete(stage.keys.leader)
            await asyncio.sleep(0.1)
        await eventually("all to run", lambda: len(runs) >= len(stage.accepted))
        await eventually("a leader", lambda: owner(stage))
    assert sorted(runs) == sorted(stage.accepted)


async def test_another_owners_lease_is_neither_renewed_nor_given_up(stage: Stage) -> None:
    async with stage.scheduler(leader_lease=0.6):
        await eventually("a leader", lambda: owner(stage))
        await stage.raw.set(stage.keys.leader, "other 5", px=900)
        left = [900]
        while await owner(stage) == "other":
            left.append(await stage.raw.pttl(stage.keys.leader))
            await asyncio.sleep(0.02)
        await eventually("the first to lead again", lambda: _leads(stage))
    assert left[:-1] == sorted(left[:-1], reverse=True)
    await stage.raw.set(stage.keys.leader, "other 5", px=900)
    async with stage.scheduler():
        await asyncio.sleep(0.05)
    assert await owner(stage) == "other"


async def test_a_lease_that_is_no_lease_is_taken(stage: Stage) -> None:
    await stage.raw.set(stage.keys.leader, "a foreign value, and without an end")
    async with stage.scheduler():
        await eventually("a leader", lambda: _leads(stage))
        assert 0 < await stage.raw.pttl(stage.keys.leader) <= 1000


async def _leads(stage: Stage) -> bool:
    return (await owner(stage)).startswith("scheduler-")


async def test_an_orderly_stop_gives_the_lease_up_so_that_another_leads_at_once(
    stage: Stage,
) -> None:
    async with stage.scheduler(leader_lease=60):
        await eventually("a leader", lambda: owner(stage))
        first = await owner(stage)
    assert await stage.raw.exists(stage.keys.leader) == 0
    async with stage.scheduler(leader_lease=60):
        await eventually("another leader", lambda: _other(stage, first), 2)


async def test_every_later_leader_has_a_higher_term(stage: Stage) -> None:
    store = AsyncStore(stage.settings())
    terms = []
    for name in "abc":
        leader = Leader(store, store.calls[0], name, 0.5)
        assert await leader.leads()
        terms.append(leader.term)
        await stage.raw.delete(stage.keys.leader)
        await asyncio.sleep(0.002)
    await store.close()
    assert terms == sorted(set(terms))


async def test_a_leader_that_cannot_renew_stops_by_itself_when_its_lease_has_ended(
    stage: Stage,
) -> None:
    with Proxy(stage.url) as proxy:
        store = AsyncStore(stage.settings(redis_url=proxy.url))
        leader = Leader(store, store.calls[0], "cut off", 0.3)
        assert await leader.leads()
        proxy.go_away()
        end_s = mono_s() + 0.3
        refused = 0
        while mono_s() < end_s + 0.1:
            try:
                assert not await leader.leads() or mono_s() <= end_s
            except RedisUnavailableError:
                refused += 1
            await asyncio.sleep(0.01)
        assert refused
        await store.close()
    await stage.raw.delete(stage.keys.leader)
