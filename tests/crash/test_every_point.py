"""Every failpoint there is: a process is killed there under load, one after another.

Nothing is lost, nothing waits for a lock of the dead, and each handler that starts once more than
its task needs was running in a process that was killed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from crash.load import ATTEMPTS, Load
from crash.points import CLIENT, FIRING, OPERATION, SCHEDULER, SUPERVISOR, WORKER, Point
from dtq_core.settings import Settings
from support.eventually import eventually
from support.programs import Program, Zygote
from support.scene import Scene

SOURCES = [Path(__file__).parents[2] / name for name in ("packages", "apps")]
MOST_STARTS = range(ATTEMPTS + 1)


@pytest.fixture
def scene(settings: Settings, zygote: Zygote, tmp_path: Path) -> Iterator[Scene]:
    """A scene in which a task may be killed often."""
    made = Scene(settings, zygote, "crash.handlers", tmp_path)
    try:
        yield made
        made.settle(MOST_STARTS)
    finally:
        made.close()


@pytest.fixture
def load(scene: Scene) -> Load:
    return Load(scene)


def points_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reach":
            yield ast.literal_eval(node.args[0])


def test_every_failpoint_of_the_product_is_killed_at_here() -> None:
    files = chain.from_iterable(source.rglob("*.py") for source in SOURCES)
    found = {name for file in files for name in points_in(file.read_text("utf-8"))}
    covered = {
        point.name for point in chain(WORKER, SCHEDULER, FIRING, OPERATION, SUPERVISOR, CLIENT)
    }
    assert found == covered


def is_killed(program: Program, point: Point) -> None:
    """Bring a program to its point, if it needs to be told, and wait until it was killed there."""
    if point.told is not None:
        program.signal(point.told)
    program.killed()


def no_lock_stays(scene: Scene) -> None:
    """A lease and a heartbeat end by themselves, soon."""
    for keys in scene.hand.store.partitions.all:
        left_ms = scene.hand.command("PTTL", keys.leader)
        assert left_ms == -2 or 0 <= left_ms <= scene.settings.leader_lease * 1000
        for worker in scene.hand.command("KEYS", keys.worker("*")):
            left_ms = scene.hand.command("PTTL", worker)
            assert left_ms == -2 or 0 <= left_ms <= 3 * scene.settings.visibility_timeout * 1000


def test_c1_a_worker_killed_at_each_point_costs_at_most_the_attempts_it_ran(
    scene: Scene, load: Load
) -> None:
    scene.crew(concurrency=1)
    killed = set()
    for point in WORKER:
        victim = scene.worker(point.armed)
        load.wave()
        if point.told is not None:
            eventually("it to work", lambda pid=victim.pid: scene.journal.of_process(pid))
        is_killed(victim, point)
        no_lock_stays(scene)
        killed.add(victim.pid)
    scene.crew(concurrency=8)
    load.all_end()
    load.check(killed)


def test_c1_a_scheduler_killed_at_each_point_costs_no_execution(scene: Scene, load: Load) -> None:
    scene.worker()
    for point in SCHEDULER:
        victim = scene.scheduler(point.armed)
        load.wave()
        if point.told is not None:
            eventually("it to lead", lambda pid=victim.pid: scene.leads(pid))
        is_killed(victim, point)
        no_lock_stays(scene)
    scene.scheduler()
    load.all_end()
    load.check(killed=set())


def test_a_supervisor_killed_at_each_point_leaves_nothing_unfinished(
    scene: Scene, load: Load
) -> None:
    """Its children finish what they run, and go; one of them may have been killed before."""
    killed = set()
    for point in SUPERVISOR:
        dies = "execute.after=kill@3" if point.name.startswith("abandon") else ""
        victim = scene.crew(dies, own=point.armed, processes=2)
        load.wave()
        if dies:
            eventually("its child to start", victim.children)
            killed |= set(victim.children())
        is_killed(victim, point)
        no_lock_stays(scene)
    scene.crew()
    load.all_end()
    load.check(killed)


@pytest.mark.parametrize("face", ["Client", "AsyncClient"])
def test_a_client_killed_at_each_point_loses_nothing_that_was_accepted(
    scene: Scene, load: Load, tmp_path: Path, face: str
) -> None:
    scene.crew()
    for point in CLIENT:
        load.wave()
        accepted = tmp_path / point.name
        way = "cancel" if point.name.startswith("cancel") else "each"
        victim = scene.program(
            "crash.submitting", face, way, "5", str(accepted), failpoints=point.armed
        )
        victim.killed()
        scene.accepted += accepted.read_text().split()
    load.all_end()
    load.check(killed=set())
