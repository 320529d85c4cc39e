"""Handlers that block, crash or spoil their process end as they must, and the others go on."""

from __future__ import annotations

from typing import Any

import pytest

from crash.handlers import work
from dtq import Handle, Status, TaskFailedError
from processes import handlers
from support.eventually import eventually
from support.scene import VISIBILITY_S, WELL_UNDER_S, Scene

LOST = "worker lost on attempt 1 of 1"
INNOCENTS = 20
INNOCENT = work.options(max_attempts=20)
SHORT_S = 0.3
ROUNDS = 50


def fails(handle: Handle[Any], reason: str) -> None:
    """Check that a task failed at its only attempt, for a reason, in one execution."""
    with pytest.raises(TaskFailedError, match=reason):
        handle.result(timeout=WELL_UNDER_S)
    info = handle.info()
    assert (info.status, info.attempt) == (Status.DEAD_LETTERED, 1)


@pytest.mark.parametrize(
    ("task", "args"),
    [
        (handlers.exit_process, (0,)),
        (handlers.exit_process, (137,)),
        (handlers.segfault, ()),
    ],
    ids=["exits with 0", "exits with 137", "segfaults"],
)
def test_h2_a_handler_that_ends_its_process_ends_at_its_only_attempt_with_that_reason(
    scene: Scene, task: Any, args: tuple[Any, ...]
) -> None:
    killer = scene.submit(task, *args)
    innocents = scene.submit_many(INNOCENT, INNOCENTS)
    scene.crew(long=True, processes=2)
    fails(killer, LOST)
    assert scene.starts(killer) == [1]
    for innocent in innocents:
        innocent.result(timeout=WELL_UNDER_S)


@pytest.mark.parametrize(
    ("task", "args", "reason"),
    [
        (handlers.raise_unprintable, (), "UnprintableError"),
        (handlers.raise_exit, (), "SystemExit"),
        (handlers.return_unencodable, (), "result"),
        (
            handlers.swallow_cancellation.options(timeout=SHORT_S),
            (WELL_UNDER_S,),
            "took longer than",
        ),
    ],
    ids=["unprintable", "SystemExit", "unencodable", "swallows cancellation"],
)
def test_a_handler_that_fails_in_an_odd_way_is_a_failed_attempt_and_ends_nothing_else(
    scene: Scene, task: Any, args: tuple[Any, ...], reason: str
) -> None:
    bad = scene.submit(task, *args)
    innocents = scene.submit_many(INNOCENT, INNOCENTS)
    scene.worker()
    fails(bad, reason)
    assert bad.info().crashes == 0
    assert scene.starts(bad) == [1]
    for innocent in innocents:
        innocent.result(timeout=WELL_UNDER_S)
    assert {scene.client.get(innocent.id).crashes for innocent in innocents} == {0}


def test_h2_a_handler_that_exhausts_memory_fails_or_ends_its_process_and_no_other_task(
    scene: Scene,
) -> None:
    """Whatever asks for memory in that moment gets none, be it the handler or the worker itself."""
    hungry = scene.submit(handlers.exhaust_memory)
    innocents = scene.submit_many(INNOCENT, INNOCENTS)
    scene.crew(long=True)
    fails(hungry, f"MemoryError|{LOST}")
    assert scene.starts(hungry) == [1]
    for innocent in innocents:
        innocent.result(timeout=WELL_UNDER_S)


def test_a_handler_that_blocks_the_loop_for_three_visibility_timeouts_runs_once(
    scene: Scene,
) -> None:
    blocker = scene.submit(handlers.block_loop, 3 * VISIBILITY_S)
    scene.worker()
    scene.started(blocker)
    scene.worker()
    neighbours = scene.submit_many(work, INNOCENTS)
    assert blocker.result(timeout=WELL_UNDER_S) == 1
    assert scene.starts(blocker) == [1]
    assert [scene.starts(each) for each in neighbours] == [[1]] * INNOCENTS


def test_a_lone_worker_whose_interpreter_was_locked_past_its_leases_runs_nothing_twice(
    scene: Scene,
) -> None:
    handle = scene.submit(handlers.hold_gil, 3 * VISIBILITY_S)
    scene.worker()
    assert handle.result(timeout=WELL_UNDER_S) == 1
    assert scene.starts(handle) == [1]


def test_a_worker_whose_interpreter_was_locked_past_its_leases_loses_the_task_and_its_outcome(
    scene: Scene,
) -> None:
    """Nobody can tell it from a dead one; what it says when it wakes is refused."""
    handle = scene.submit(handlers.hold_gil, 3 * VISIBILITY_S)
    locked = scene.worker()
    scene.started(handle)
    scene.crew()
    assert handle.result(timeout=WELL_UNDER_S) == 2
    eventually(
        "the first one to wake",
        lambda: [line.pid for line in scene.journal.lines("end", handle.id)].count(locked.pid),
    )
    after = scene.submit(work)
    after.result(timeout=WELL_UNDER_S)
    info = handle.info()
    assert (info.status, info.attempt, info.crashes) == (Status.SUCCEEDED, 2, 1)
    assert scene.starts(handle) == [1, 2]
    assert locked.exit_code is None


@pytest.mark.parametrize("first", [True, False], ids=["first step", "last step"])
def test_c5_a_task_that_submits_its_own_key_is_always_answered_by_itself(
    scene: Scene, first: bool
) -> None:
    """A key belongs to its task until the key's time to live ends: never a second generation."""
    handles = [
        scene.submit(
            handlers.go_on.options(idempotency_key=f"chain-{number}"), f"chain-{number}", first
        )
        for number in range(ROUNDS)
    ]
    scene.crew(processes=2, concurrency=8)
    assert [handle.result(timeout=WELL_UNDER_S) for handle in handles] == [h.id for h in handles]
    assert [scene.starts(handle) for handle in handles] == [[1]] * ROUNDS
