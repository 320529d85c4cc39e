"""Keys vanish, or come back as they were before: what is left is finished, and new work is done."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtq_core.embedded import TemporaryServer, start_temporary
from faults.handlers import fail_once, nap
from faults.load import Load
from faults.recovery import goes_on, settles, unfinished
from faults.watch import Watch
from support.eventually import eventually
from support.scene import Scene

_TWICE_EACH = range(5)
"""Starts of a task with two attempts whose end the server has forgotten."""
_MANY = 500
BANDS = ("critical", "high", "normal", "low")


def idle(scene: Scene) -> None:
    """Wait until every worker waits for a token."""
    eventually(
        "workers that wait", lambda: scene.hand.command("INFO")["blocked_clients"] >= 2, limit_s=5
    )


def test_everything_flushed_under_idle_workers_costs_nothing_that_comes_later(
    scene: Scene,
) -> None:
    crew = scene.crew()
    idle(scene)
    scene.submit(nap.options(delay=600))
    watch = Watch(crew)
    scene.hand.command("FLUSHALL")
    scene.accepted.clear()
    goes_on(scene, crew)
    watch.check_silence()
    settles(scene, range(1, 2))


def test_everything_flushed_under_load_costs_nothing_that_comes_later(scene: Scene) -> None:
    crew = scene.crew()
    with Load(scene):
        eventually("work to be done", lambda: len(scene.journal.lines("end")) > 20)
    scene.submit_many(nap, 100, 0.2)
    eventually("some to run", lambda: len(scene.journal.lines()) > 90)
    scene.hand.command("FLUSHALL")
    scene.accepted.clear()
    scene.submit(fail_once)
    goes_on(scene, crew)
    settles(scene, range(1, 3))


def test_a2_a_band_deleted_under_idle_workers_loses_nothing_that_comes_later(scene: Scene) -> None:
    crew = scene.crew()
    idle(scene)
    for band in BANDS:
        scene.hand.command("DEL", scene.hand.store.partitions.all[0].stream("default", band))
        for _ in range(5):
            scene.submit(nap.options(band=band))
    goes_on(scene, crew)
    settles(scene, range(1, 2))


def test_a2_what_was_submitted_before_any_worker_ran_is_all_run_once(scene: Scene) -> None:
    for band in BANDS:
        for _ in range(5):
            scene.submit(nap.options(band=band))
    crew = scene.crew()
    goes_on(scene, crew)
    settles(scene, range(1, 2))


def test_a3_hundreds_that_ended_behind_a_long_task_cost_it_nothing(scene: Scene) -> None:
    """Its worker dies; then it is found with all its arguments, before all that has ended."""
    long = scene.submit(nap.options(band="critical"), 60)
    first = scene.worker(concurrency=1)
    scene.started(long)
    crew = scene.crew(concurrency=100)
    scene.submit_many(nap.options(band="critical"), _MANY, 0)
    totals = scene.hand.store.partitions.all[0].stats("default")
    eventually(
        "the others to end",
        lambda: int(scene.hand.command("HGET", totals, "SUCCEEDED") or 0) == _MANY,
        limit_s=30,
    )
    first.kill_all()
    eventually("its second start", lambda: len(scene.starts(long)) == 2)
    assert scene.starts(long) == [1, 2]
    long.cancel()
    goes_on(scene, crew)
    scene.accepted.remove(long.id)
    settles(scene, range(1, 2))


def test_d6_a_record_deleted_while_it_runs_and_a_lost_leader_stop_nobody(scene: Scene) -> None:
    crew = scene.crew()
    gone = scene.submit(nap.options(idempotency_key="order-1"), 0.5)
    scene.started(gone)
    keys = scene.hand.store.partitions.all[0]
    scene.hand.command("DEL", keys.task(gone.id), keys.leader, keys.idempotency("order-1"))
    scene.accepted.remove(gone.id)
    again = scene.submit(nap.options(idempotency_key="order-1"), 0.5)
    assert again.id != gone.id
    assert again.result(5) == 1
    goes_on(scene, crew)
    eventually("its entry to be absorbed", lambda: scene.hand.pending() == 0)
    assert len(scene.starts(gone)) == 1


class TestAnOlderSnapshot:
    """The server comes back with the data of a while ago; the workers have stayed."""

    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[TemporaryServer]:
        with start_temporary(tmp_path) as made:
            yield made

    def test_d7_tasks_that_it_knows_all_end_and_later_ones_are_forgotten(
        self, server: TemporaryServer, scene: Scene, tmp_path: Path
    ) -> None:
        crew = scene.crew()
        dump, kept = tmp_path / ".dtq" / "dump.rdb", tmp_path / "kept.rdb"
        with Load(scene):
            eventually("work to be done", lambda: len(scene.journal.lines("end")) > 20)
        running = scene.submit_many(nap, 10, 2.5)
        scene.submit_many(nap, 100, 0.05)
        scene.submit(nap.options(delay=1))
        scene.submit(fail_once)
        scene.started(*running)
        scene.hand.command("SAVE")
        shutil.copy(dump, kept)
        known = list(scene.accepted)
        with Load(scene):
            eventually("more to be done", lambda: len(scene.journal.lines("end")) > 200)
        server.kill()
        shutil.copy(kept, dump)
        server.restart()
        scene.accepted[:] = known
        goes_on(scene, crew)
        eventually("the tasks to end", lambda: not unfinished(scene))
        scene.settle(_TWICE_EACH)
