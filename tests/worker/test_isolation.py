"""A task that ends its process does not take its neighbours with it."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

from dtq_core.record import TaskInfo
from worker import handlers
from worker.processes import Crew, Journal
from worker.stage import Stage, eventually

QUICK = {"visibility_timeout": 30, "reaper_interval": 0.3}


async def test_h2_innocents_succeed_and_only_the_killers_are_dead_lettered(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    crew(processes=2, concurrency=20, **QUICK)
    innocents = [await stage.submit(handlers.nap, 0.2) for _ in range(30)]
    killers = [await stage.submit(handlers.fall, 0) for _ in range(3)]
    innocents += [await stage.submit(handlers.nap, 0.2) for _ in range(30)]
    assert set(await stage.ended(*innocents, limit_s=60)) == {"SUCCEEDED"}
    assert set(await stage.ended(*killers, limit_s=60)) == {"DEAD_LETTERED"}
    for killer in killers:
        info = await killer.info()
        assert info.error is not None
        assert "ran alone in its process: the task ends it" in info.error
        assert (info.attempt, info.crashes) == (3, 3)
    starts = Counter(line.task_id for line in journal.lines("start"))
    # One that was claimed together with another killer may not have come to its start.
    assert {starts[killer.id] for killer in killers} <= {1, 2, 3}


async def test_suspects_run_one_at_a_time_and_the_process_ends_when_none_are_left(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(processes=1, concurrency=20, **QUICK)
    handles = [await stage.submit(handlers.nap.options(max_attempts=2), 0.3) for _ in range(5)]
    fleet = {line.pid for line in await journal.wait_for("start", 5)}
    for pid in fleet:
        os.kill(pid, signal.SIGKILL)
    assert set(await stage.ended(*handles, limit_s=60)) == {"SUCCEEDED"}
    again = [line for line in journal.lines() if line.attempt == 2]
    assert [line.event for line in again] == ["start", "end"] * 5
    (isolator,) = {line.pid for line in again}
    infos: list[TaskInfo] = [await handle.info() for handle in handles]
    assert {(info.attempt, info.crashes) for info in infos} == {(2, 1)}
    await eventually(
        "the isolating process has ended", lambda: isolator not in supervisor.children()
    )
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0


async def test_a_stop_gives_back_the_suspect_that_runs(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(processes=1, concurrency=5, shutdown_grace=0.1, **QUICK)
    handle = await stage.submit(handlers.nap.options(max_attempts=2), 60)
    [first] = await journal.wait_for("start")
    os.kill(first.pid, signal.SIGKILL)
    await journal.wait_for("start", 2)
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0
    info = await handle.info()
    assert (info.status, info.attempt, info.releases) == ("QUEUED", 2, 1)
    await stage.client.cancel(handle.id)
