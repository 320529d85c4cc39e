"""A worker process is killed in each window there is: under a supervisor, and with nobody left.

Under a supervisor another process takes over at once; the visibility timeout is out of reach. With
the supervisor dead as well, the reaper of another worker takes over after the visibility timeout.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

from crash.handlers import die, work
from crash.scene import WELL_UNDER_S, Scene
from dtq import Handle, Status


class Window(NamedTuple):
    """Where a worker is killed, and what that costs.

    Attributes:
        failpoint: where.
        runs: how often the handler has started when all is over.
        attempts: how many attempts that were.
    """

    failpoint: str
    runs: int
    attempts: int


BEFORE_IT_IS_READ = Window("claim.before", runs=1, attempts=1)
BEFORE_THE_HANDLER = [
    Window("claim.after", runs=1, attempts=2),
    Window("execute.before", runs=1, attempts=2),
]
BEFORE_ITS_OUTCOME_IS_STORED = [
    Window("execute.after", runs=2, attempts=2),
    Window("finish.before", runs=2, attempts=2),
]
AFTER_ITS_OUTCOME_IS_STORED = Window("finish.after", runs=1, attempts=1)


def name(window: Window) -> str:
    return window.failpoint


def succeeded(scene: Scene, handle: Handle[Any], window: Window) -> None:
    """Check a task that has survived a window."""
    info = handle.info()
    assert info.status is Status.SUCCEEDED
    assert (info.attempt, info.crashes) == (window.attempts, window.attempts - 1)
    assert len(scene.starts(handle)) == window.runs
    outcomes = [attempt.outcome for attempt in handle.attempts()]
    assert outcomes == ["crashed"] * (window.attempts - 1) + ["succeeded"]


def survive_under_a_supervisor(scene: Scene, window: Window) -> None:
    handle = scene.submit(work, 7)
    start = time.monotonic()
    scene.crew(f"{window.failpoint}=kill", long=True)
    assert handle.result(timeout=WELL_UNDER_S) == 7
    assert time.monotonic() - start < WELL_UNDER_S
    succeeded(scene, handle, window)


def survive_alone(scene: Scene, window: Window) -> None:
    handle = scene.submit(work, 7)
    scene.worker(f"{window.failpoint}=kill").killed()
    scene.worker()
    assert handle.result(timeout=WELL_UNDER_S) == 7
    succeeded(scene, handle, window)


@pytest.mark.parametrize("survive", [survive_under_a_supervisor, survive_alone])
def test_killed_before_the_entry_is_read(scene: Scene, survive: Any) -> None:
    survive(scene, BEFORE_IT_IS_READ)


@pytest.mark.parametrize("survive", [survive_under_a_supervisor, survive_alone])
@pytest.mark.parametrize("window", BEFORE_THE_HANDLER, ids=name)
def test_killed_with_the_task_in_hand_before_its_handler_starts(
    scene: Scene, window: Window, survive: Any
) -> None:
    survive(scene, window)


@pytest.mark.parametrize("survive", [survive_under_a_supervisor, survive_alone])
@pytest.mark.parametrize("window", BEFORE_ITS_OUTCOME_IS_STORED, ids=name)
def test_killed_when_the_handler_is_done_and_its_outcome_not_stored(
    scene: Scene, window: Window, survive: Any
) -> None:
    survive(scene, window)


@pytest.mark.parametrize("survive", [survive_under_a_supervisor, survive_alone])
def test_killed_after_the_outcome_is_stored(scene: Scene, survive: Any) -> None:
    survive(scene, AFTER_ITS_OUTCOME_IS_STORED)


def test_killed_while_the_handler_runs_under_a_supervisor(scene: Scene) -> None:
    handle = scene.submit(die, 1)
    start = time.monotonic()
    scene.crew(long=True)
    assert handle.result(timeout=WELL_UNDER_S) == 2
    assert time.monotonic() - start < WELL_UNDER_S
    succeeded(scene, handle, Window("", runs=2, attempts=2))


def test_killed_while_the_handler_runs_with_nobody_left(scene: Scene) -> None:
    handle = scene.submit(die, 1)
    scene.worker().killed()
    scene.worker()
    assert handle.result(timeout=WELL_UNDER_S) == 2
    succeeded(scene, handle, Window("", runs=2, attempts=2))


def test_nothing_is_pending_once_the_outcome_is_stored(scene: Scene) -> None:
    """After the acknowledgement there is nothing that any worker could meet."""
    handle = scene.submit(work, 7)
    scene.worker("finish.after=kill").killed()
    assert handle.result(timeout=0) == 7
    assert scene.hand.entries() == []
    assert scene.hand.pending() == 0


@pytest.mark.parametrize(("failpoint", "attempts"), [("reclaim.before", 2), ("reclaim.after", 3)])
def test_whoever_takes_over_is_killed_as_well(scene: Scene, failpoint: str, attempts: int) -> None:
    handle = scene.submit(work, 7)
    scene.crew("execute.before=kill", f"{failpoint}=kill", long=True)
    assert handle.result(timeout=WELL_UNDER_S) == 7
    succeeded(scene, handle, Window(failpoint, runs=1, attempts=attempts))
