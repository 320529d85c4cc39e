"""A task that takes its worker down counts, each time; nothing loops for ever."""

from __future__ import annotations

import pytest

from crash.handlers import die, work
from dtq import CancelAnswer, Status
from dtq_core.errors import TaskCancelledError, TaskFailedError
from support.scene import WELL_UNDER_S, Scene

ALWAYS = 1_000


@pytest.mark.parametrize(
    ("dead_letter", "status"), [(True, Status.DEAD_LETTERED), (False, Status.FAILED)]
)
def test_a_task_that_crashes_on_every_attempt_ends_after_the_last(
    scene: Scene, dead_letter: bool, status: Status
) -> None:
    poison = scene.submit(die.options(max_attempts=3, dead_letter=dead_letter), ALWAYS)
    scene.crew(long=True)
    with pytest.raises(TaskFailedError, match="worker lost on attempt 3 of 3"):
        poison.result(timeout=WELL_UNDER_S)
    info = poison.info()
    assert (info.status, info.attempt, info.crashes) == (status, 3, 3)
    assert scene.starts(poison) == [1, 2, 3]
    assert [attempt.outcome for attempt in poison.attempts()] == ["crashed"] * 3
    keys = scene.hand.store.keys_of(poison.id)
    dead = [
        fields[b"id"].decode() for _, fields in scene.hand.command("XRANGE", keys.dlq, "-", "+")
    ]
    assert dead == [poison.id] * dead_letter


def test_one_attempt_means_one(scene: Scene) -> None:
    poison = scene.submit(die.options(max_attempts=1), ALWAYS)
    scene.crew(long=True)
    with pytest.raises(TaskFailedError, match="worker lost on attempt 1 of 1"):
        poison.result(timeout=WELL_UNDER_S)
    assert scene.starts(poison) == [1]


@pytest.mark.parametrize("settings", [3], indirect=True)
def test_others_in_the_same_processes_end_well(scene: Scene) -> None:
    poison = scene.submit(die.options(max_attempts=2), ALWAYS)
    others = [scene.submit(work.options(max_attempts=10), number) for number in range(30)]
    scene.crew(long=True, processes=2)
    with pytest.raises(TaskFailedError):
        poison.result(timeout=WELL_UNDER_S)
    assert [other.result(timeout=WELL_UNDER_S) for other in others] == list(range(30))
    assert scene.starts(poison) == [1, 2]


def test_a_task_whose_cancelling_was_asked_for_is_not_run_again(scene: Scene) -> None:
    """Its worker dies before it learns of that."""
    handle = scene.submit(work)
    scene.hand.claim()
    assert handle.cancel("not needed") is CancelAnswer.REQUESTED
    scene.worker()
    with pytest.raises(TaskCancelledError, match="not needed"):
        handle.result(timeout=WELL_UNDER_S)
    assert scene.starts(handle) == []
