"""Queues that an operator has paused: nothing is taken from them, and nothing is lost."""

from __future__ import annotations

import pytest

from dtq_core import reads
from dtq_core.calls import Suspects
from dtq_core.keyspace import bands_of
from dtq_core.states import Status
from scripts.table import QUEUE, Table

pytestmark = pytest.mark.ledger_checked


def test_from_a_paused_queue_nothing_new_is_claimed_until_it_is_resumed(table: Table) -> None:
    task_id = table.submit()
    assert table.pause() == [True]
    assert table.take().claims == []
    assert table.pause(paused=False) == [True]
    assert table.take().overdue, "what a dead worker may have left comes first"
    assert [claim.task_id for claim in table.take().claims] == [task_id]


def test_what_was_given_back_or_left_in_a_paused_queue_waits_as_well(table: Table) -> None:
    table.submit(), table.submit()
    released, left = table.take().claims
    table.release(released)
    table.abandon("w1")
    table.pause()
    taken = table.reclaim(idle_ms=0)
    assert (taken.claims, taken.suspects) == ([], False)
    assert not table.take().overdue, "a token would send the worker to reclaim, again and again"
    table.pause(paused=False)
    assert {claim.task_id for claim in table.reclaim().claims} == {released.task_id, left.task_id}


def test_suspects_of_a_paused_queue_call_for_no_process(table: Table) -> None:
    table.submit(max_attempts=2)
    table.take()
    table.abandon("w1")
    assert table.reclaim(suspects=Suspects.LEAVE).suspects
    table.pause()
    assert not table.reclaim(suspects=Suspects.LEAVE).suspects


def test_what_runs_in_a_paused_queue_ends_as_always(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.pause()
    table.succeed(claim)
    assert table.status(task_id) is Status.SUCCEEDED


def test_a_paused_queue_still_takes_tasks_and_other_queues_go_on(table: Table) -> None:
    table.submit(queue="other")
    table.pause()
    waiting = table.submit()
    table.bands = bands_of([QUEUE, "other"])
    assert [claim.queue for claim in table.take().claims] == ["other"]
    assert table.status(waiting) is Status.QUEUED


def test_pausing_says_what_it_changed(table: Table) -> None:
    assert table.pause("a", "b") == [True, True]
    assert table.pause("a", "c") == [False, True]
    assert table.pause("a", "d", paused=False) == [True, False]
    assert table.store.read(reads.queues(table.keys, ["a"]))[0].paused_since is None
    assert table.store.read(reads.queues(table.keys, ["b"]))[0].paused_since is not None


def test_resuming_wakes_workers_for_what_waits(table: Table) -> None:
    table.pause()
    for _ in range(3):
        table.submit()
    table.take()
    assert table.redis("LLEN", table.keys.wake(QUEUE)) == 0, "what cannot be taken wakes nobody"
    table.pause(paused=False)
    assert table.redis("LRANGE", table.keys.wake(QUEUE), 0, -1).count(b"n") == 3
