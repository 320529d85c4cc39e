"""A worker process is killed in each window there is: under a supervisor, and with nobody left.

Under a supervisor another process takes over at once; the visibility timeout is out of reach. With
the supervisor dead as well, the reaper of another worker takes over after the visibility timeout.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from crash.handlers import die, work
from dtq import Handle, Status
from support.scene import WELL_UNDER_S, Scene


class Window(NamedTuple):
    """Where a worker is killed, and what that costs.

    Attributes:
        failpoint: where; empty: inside the handler.
        starts: how often the handler has started when all is over.
        attempts: how many attempts that were.
    """

    failpoint: str
    starts: int
    attempts: int

    @property
    def armed(self) -> str:
        return f"{self.failpoint}=kill" if self.failpoint else ""


BEFORE_IT_IS_READ = Window("claim.before", starts=1, attempts=1)
BEFORE_THE_HANDLER = [
    Window("claim.after", starts=1, attempts=2),
    Window("execute.before", starts=1, attempts=2),
]
IN_THE_HANDLER = Window("", starts=2, attempts=2)
BEFORE_ITS_OUTCOME_IS_STORED = [
    Window("execute.after", starts=2, attempts=2),
    Window("finish.before", starts=2, attempts=2),
]
AFTER_ITS_OUTCOME_IS_STORED = Window("finish.after", starts=1, attempts=1)

Survive = Callable[[Scene, Handle[Any], Window], None]


def name(window: Window) -> str:
    return window.failpoint


def check(scene: Scene, handle: Handle[Any], window: Window) -> None:
    """Check a task that has survived a window."""
    info = handle.info()
    assert info.status is Status.SUCCEEDED
    assert (info.attempt, info.crashes) == (window.attempts, window.attempts - 1)
    assert len(scene.starts(handle)) == window.starts
    outcomes = [attempt.outcome for attempt in handle.attempts()]
    assert outcomes == ["crashed"] * (window.attempts - 1) + ["succeeded"]


def under_a_supervisor(scene: Scene, handle: Handle[Any], window: Window) -> None:
    start = time.monotonic()
    scene.crew(window.armed, long=True)
    handle.result(timeout=WELL_UNDER_S)
    assert time.monotonic() - start < WELL_UNDER_S
    check(scene, handle, window)


def with_nobody_left(scene: Scene, handle: Handle[Any], window: Window) -> None:
    scene.worker(window.armed).killed()
    scene.worker()
    handle.result(timeout=WELL_UNDER_S)
    check(scene, handle, window)


both_ways = pytest.mark.parametrize(
    "survive", [under_a_supervisor, with_nobody_left], ids=lambda way: way.__name__
)


@both_ways
def test_killed_before_the_entry_is_read(scene: Scene, survive: Survive) -> None:
    survive(scene, scene.submit(work), BEFORE_IT_IS_READ)


@both_ways
@pytest.mark.parametrize("window", BEFORE_THE_HANDLER, ids=name)
def test_killed_with_the_task_in_hand_before_its_handler_starts(
    scene: Scene, window: Window, survive: Survive
) -> None:
    survive(scene, scene.submit(work), window)


@both_ways
def test_killed_while_the_handler_runs(scene: Scene, survive: Survive) -> None:
    survive(scene, scene.submit(die), IN_THE_HANDLER)


@both_ways
@pytest.mark.parametrize("window", BEFORE_ITS_OUTCOME_IS_STORED, ids=name)
def test_killed_when_the_handler_is_done_and_its_outcome_not_stored(
    scene: Scene, window: Window, survive: Survive
) -> None:
    survive(scene, scene.submit(work), window)


@both_ways
def test_killed_after_the_outcome_is_stored(scene: Scene, survive: Survive) -> None:
    survive(scene, scene.submit(work), AFTER_ITS_OUTCOME_IS_STORED)


def test_nothing_is_pending_once_the_outcome_is_stored(scene: Scene) -> None:
    """After the acknowledgement there is nothing that a worker could meet."""
    handle = scene.submit(work, 7)
    scene.worker(AFTER_ITS_OUTCOME_IS_STORED.armed).killed()
    assert handle.result(timeout=0) == 7
    assert scene.hand.entries() == []
    assert scene.hand.pending() == 0


@pytest.mark.parametrize(("failpoint", "attempts"), [("reclaim.before", 2), ("reclaim.after", 3)])
def test_whoever_takes_over_is_killed_as_well(scene: Scene, failpoint: str, attempts: int) -> None:
    handle = scene.submit(work)
    scene.crew("execute.before=kill", f"{failpoint}=kill", long=True)
    handle.result(timeout=WELL_UNDER_S)
    check(scene, handle, Window(failpoint, starts=1, attempts=attempts))
