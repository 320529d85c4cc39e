"""A process is frozen, or told to stop, at every stage of its work.

A failpoint stops the process by SIGSTOP; what is sent to it meanwhile reaches it exactly there.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from crash.load import Load
from crash.points import SCHEDULER, SUPERVISOR, WORKER, Point
from dtq_worker.child import EXIT_HURRIED
from support.eventually import eventually
from support.programs import Program, state_of
from support.scene import Scene

unhurried = pytest.mark.parametrize("settings", [1.6], indirect=True, ids=["long leases"])
"""With a visibility timeout that is not reached meanwhile."""


@pytest.fixture
def load(scene: Scene) -> Load:
    return Load(scene)


def armed(point: Point) -> str:
    return f"{point.name}=stop@{point.nth}"


def stopped_worker(scene: Scene, load: Load, point: Point) -> Program:
    """Start a worker, and wait until it stands still at a point."""
    program = scene.worker(armed(point))
    load.wave()
    if point.told is not None:
        eventually("it to work", lambda: scene.journal.of_process(program.pid))
        program.signal(point.told)
    stands_still(program, point)
    return program


def stopped_crew(scene: Scene, load: Load, point: Point) -> Program:
    dies = "beat.after=kill@3" if point.name.startswith("abandon") else ""
    program = scene.crew(dies, own=armed(point), processes=2)
    load.wave()
    stands_still(program, point)
    return program


def stands_still(program: Program, point: Point) -> None:
    eventually(f"it to stand still at {point.name}", lambda: state_of(program.pid) == "T")


def thaw(programs: Sequence[Program]) -> None:
    for program in programs:
        program.signal(signal.SIGCONT)


def test_workers_frozen_past_their_leases_at_each_stage_change_nothing_when_they_wake(
    scene: Scene, load: Load
) -> None:
    scene.scheduler()
    frozen = [stopped_worker(scene, load, point) for point in WORKER]
    crew = scene.crew(concurrency=8)
    load.all_end()
    before = load.outcomes()
    thaw(frozen)
    load.wave()
    load.all_end()
    for program, point in zip(frozen, WORKER, strict=True):
        if point.told is None:
            assert program.exit_code is None, point
            program.signal(signal.SIGTERM)
        assert program.ended() == 0, point
    crew.signal(signal.SIGTERM)
    assert crew.ended() == 0
    assert load.outcomes().items() >= before.items()
    load.check({program.pid for program in frozen})


@unhurried
def test_h4_sigterm_at_each_stage_is_an_orderly_stop_and_costs_nothing(
    scene: Scene, load: Load
) -> None:
    scene.scheduler()
    for point in WORKER:
        program = stopped_worker(scene, load, point)
        program.signal(signal.SIGTERM)
        program.signal(signal.SIGCONT)
        assert program.ended() == 0, (point, program.log.read_text())
    scene.worker()
    load.all_end()
    load.check(killed=set())


@unhurried
def test_h4_a_second_sigterm_at_each_stage_gives_everything_back_at_no_attempt(
    scene: Scene, load: Load
) -> None:
    """A supervisor tells a child of the second signal on their line."""
    scene.scheduler()
    hurried = set()
    for point in WORKER:
        program = stopped_worker(scene, load, point)
        program.signal(signal.SIGTERM)
        program.say("!")
        program.signal(signal.SIGCONT)
        assert program.ended(5) in {0, EXIT_HURRIED}, (point, program.log.read_text())
        hurried.add(program.pid)
    scene.worker()
    load.all_end()
    load.check(killed=set(), hurried=hurried)


@unhurried
@pytest.mark.parametrize("signals", [1, 2])
def test_h4_a_supervisor_told_to_stop_at_each_stage_leaves_nobody_behind(
    scene: Scene, load: Load, signals: int
) -> None:
    crews = [stopped_crew(scene, load, point) for point in SUPERVISOR]
    children = [pid for crew in crews for pid in crew.children()]
    workers = {line.pid for line in scene.journal.lines()} | set(children)
    for crew in crews:
        crew.signal(signal.SIGTERM)
    thaw(crews)
    if signals == 2:
        for crew in crews:
            crew.signal(signal.SIGINT)
    for crew, point in zip(crews, SUPERVISOR, strict=True):
        assert crew.ended() in ({0} if signals == 1 else {0, EXIT_HURRIED}), point
    assert not any(state_of(pid) not in {"", "Z"} for pid in children)
    scene.crew()
    load.all_end()
    load.check(killed=workers, hurried=workers)


def test_frozen_supervisors_hold_up_nothing(scene: Scene, load: Load) -> None:
    crews = [stopped_crew(scene, load, point) for point in SUPERVISOR]
    workers = {line.pid for line in scene.journal.lines()}
    scene.crew()
    load.all_end()
    thaw(crews)
    load.wave()
    load.all_end()
    assert [crew.exit_code for crew in crews] == [None] * len(crews)
    load.check(killed=workers)


def test_j2_schedulers_frozen_past_their_lease_at_each_stage_cause_no_second_execution(
    scene: Scene, load: Load
) -> None:
    scene.worker()
    frozen = []
    for point in SCHEDULER:
        frozen.append(scene.scheduler(armed(point)))
        load.wave()
        if point.told is not None:
            eventually("it to lead", lambda pid=frozen[-1].pid: scene.leads(pid))
            frozen[-1].signal(point.told)
        stands_still(frozen[-1], point)
    scene.scheduler()
    load.all_end()
    thaw(frozen)
    load.wave()
    load.all_end()
    load.check(killed=set())
