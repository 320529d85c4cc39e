"""Workers that come and go all the time leave nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from crash.handlers import linger, work
from dtq_core.keyspace import GROUP, OVERDUE, SUSPECTS
from support.eventually import eventually
from support.programs import Program
from support.scene import WELL_UNDER_S, Scene

STARTS = int(os.environ.get("MANY_STARTS", "20"))
AT_ONCE = 4
CLEARED_WITHIN_S = 15.0


def kill(program: Program) -> None:
    program.kill_all()


def stop(program: Program) -> None:
    program.signal(signal.SIGTERM)
    assert program.ended() in {0, -signal.SIGTERM}  # the latter before it could listen for it


def hurry(program: Program) -> None:
    program.signal(signal.SIGTERM)
    program.say("!")
    assert program.ended() in {0, 1, -signal.SIGTERM}


WAYS: list[Callable[[Program], None]] = [kill, stop, kill, hurry]


def consumers(scene: Scene) -> set[str]:
    stream = scene.hand.store.partitions.all[0].stream("default", "normal")
    rows = scene.hand.store.link.raw("XINFO", "CONSUMERS", stream, GROUP)
    return {row[1].decode() for row in rows} - {OVERDUE, SUSPECTS}


@pytest.mark.timeout(60 + 2 * STARTS)
@pytest.mark.parametrize("settings", [0.5], indirect=True, ids=[f"{STARTS} starts"])
def test_e2_starts_and_stops_half_of_them_kills_leave_no_consumer_and_no_task_behind(
    scene: Scene,
) -> None:
    scene.scheduler()
    handles = []
    for number in range(0, STARTS, AT_ONCE):
        workers = [scene.worker() for _ in range(AT_ONCE)]
        handles += scene.submit_many(work.options(max_attempts=STARTS), 5 * AT_ONCE)
        eventually("one to work", lambda n=number: scene.journal.count("start").total() > 5 * n)
        for worker, end in zip(workers, WAYS, strict=True):
            end(worker)
    scene.crew(processes=2)
    for handle in handles:
        handle.result(timeout=WELL_UNDER_S)
    eventually("the dead to be cleared away", lambda: len(consumers(scene)) <= 2, CLEARED_WITHIN_S)
    workers_key = scene.hand.store.partitions.all[0].workers
    eventually(
        "only the live to be known",
        lambda: scene.hand.command("ZCARD", workers_key) <= 2,
        CLEARED_WITHIN_S,
    )


def test_e2_a_second_worker_of_a_live_name_is_refused_and_touches_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    """It would adopt, at its start, what its namesake runs."""
    gate = tmp_path / "gate"
    handle = scene.submit(linger, str(gate))
    scene.worker(worker_id="namesake")
    scene.started(handle)
    assert scene.worker(worker_id="namesake").ended() != 0
    gate.touch()
    assert handle.result(timeout=WELL_UNDER_S) == 1
    assert scene.starts(handle) == [1]


def test_a1_whatever_clears_away_dead_workers_keeps_the_tasks_that_they_held(
    scene: Scene, tmp_path: Path
) -> None:
    """The sweeper, a reaper, and a new worker of the same name come at the same time."""
    gate = tmp_path / "gate"
    handles = [scene.submit(linger, str(gate)) for _ in range(3)]
    victim = scene.worker(worker_id="pod-1")
    scene.started(*handles)
    victim.kill_all()
    keys = scene.hand.store.partitions.all[0]
    eventually(
        "it to count as dead", lambda: not scene.hand.command("EXISTS", keys.worker("pod-1"))
    )
    scene.scheduler()
    scene.worker(worker_id="pod-1")
    scene.worker()
    gate.touch()
    assert [handle.result(timeout=WELL_UNDER_S) for handle in handles] == [2] * 3
    assert [scene.starts(handle) for handle in handles] == [[1, 2]] * 3
