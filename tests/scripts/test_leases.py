"""A lease is the right to finish one attempt, refused when it is not current."""

from __future__ import annotations

import pytest

from dtq_core.decide import Finish
from dtq_core.scripts import Code
from dtq_core.states import Status
from scripts.table import ERROR, LONG_MS, Table

pytestmark = pytest.mark.ledger_checked


@pytest.mark.parametrize("act", ["succeed", "retry", "fail", "release", "renew"])
def test_a_stale_lease_writes_nothing(act: str, table: Table) -> None:
    task_id = table.submit()
    stale = table.claim("w1")
    current = table.reclaim("w2", idle_ms=0).claims[0]
    assert current.task_id == task_id
    before = table.snapshot()
    answer = getattr(table, act)(stale)
    assert (answer if act == "renew" else answer.code) is Code.LOST
    assert table.snapshot() == before


def test_every_claim_has_a_higher_lease(table: Table) -> None:
    table.submit()
    leases = [table.claim("w1").lease]
    leases += [table.reclaim("w2", idle_ms=0).claims[0].lease for _ in range(2)]
    leases.append(table.adopt("w2").claims[0].lease)
    assert leases == [1, 2, 3, 4]


@pytest.mark.parametrize("act", ["succeed", "retry", "fail"])
def test_the_same_finish_again_gets_the_same_answer_and_writes_nothing(
    act: str, table: Table
) -> None:
    table.submit()
    claim = table.claim()
    first = getattr(table, act)(claim)
    before = table.snapshot()
    again = getattr(table, act)(claim)
    assert (first.code, again.code) == (Code.OK, Code.AGAIN)
    assert again.status == first.status
    assert table.snapshot() == before


def test_one_lease_finishes_once_even_in_one_batch(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    twice = [Finish.succeeded(claim, b"1", LONG_MS), Finish.failed(claim, ERROR)]
    assert [answer.code for answer in table.finish(*twice)] == [Code.OK, Code.AGAIN]
    assert table.status(task_id) is Status.SUCCEEDED
    assert len(table.attempts(task_id)) == 1


def test_a_finish_after_its_retry_was_promoted_is_still_the_same_finish(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.retry(claim)
    table.promote("retry")
    assert table.retry(claim).code is Code.AGAIN
    assert table.status(task_id) is Status.QUEUED


def test_a_worker_cannot_finish_what_it_gave_back(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.release(claim)
    assert table.succeed(claim).code is Code.LOST
    assert table.release(claim).code is Code.LOST
    assert table.status(task_id) is Status.QUEUED


def test_a_task_that_is_gone_is_unknown(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.redis("DEL", table.keys.task(task_id))
    assert table.succeed(claim).code is Code.UNKNOWN
    assert table.release(claim).code is Code.UNKNOWN
    assert table.renew(claim) is Code.UNKNOWN


def test_a_renewed_entry_is_not_reclaimed(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.redis("XCLAIM", table.stream(), "workers", "w1", 0, claim.entry_id, "IDLE", LONG_MS)
    assert table.renew(claim) is Code.OK
    assert table.reclaim("w2", idle_ms=LONG_MS).claims == []
    assert table.record(task_id)["worker"] == "w1"


def test_a_renewal_stores_progress_and_tells_of_a_cancel(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    assert table.renew(claim, progress=b"0.5") is Code.OK
    assert table.record(task_id)["progress"] == "0.5"
    table.cancel(task_id)
    assert table.renew(claim) is Code.CANCEL


def test_released_work_costs_no_attempt_and_is_taken_first(table: Table) -> None:
    task_id = table.submit()
    table.release(table.claim("w1"))
    newer = table.submit()
    taken = table.reclaim("w2")
    assert [(claim.task_id, claim.attempt, claim.releases) for claim in taken.claims] == [
        (task_id, 1, 1)
    ]
    assert table.status(newer) is Status.QUEUED


def test_release_with_a_delay_rests_in_the_schedule_at_no_attempt(table: Table) -> None:
    task_id = table.submit()
    table.release(table.claim(), delay_ms=LONG_MS)
    assert table.status(task_id) is Status.SCHEDULED
    assert (table.pending(), table.length()) == (0, 0)
    first = table.record(task_id)["postponed_ms"]
    table.redis("ZADD", table.keys.delay_schedule, 1, task_id)
    table.promote("delay")
    claim = table.claim()
    assert (claim.attempt, claim.postponed_ms) == (1, int(first))
    table.release(claim, delay_ms=LONG_MS)
    assert table.record(task_id)["postponed_ms"] == first


@pytest.mark.parametrize("act", ["retry", "release"])
def test_a_task_that_a_worker_knew_is_no_longer_unknown_since_before(
    act: str, table: Table
) -> None:
    task_id = table.submit()
    table.release(table.claim(), delay_ms=LONG_MS)
    table.redis("ZADD", table.keys.delay_schedule, 1, task_id)
    table.promote("delay")
    getattr(table, act)(table.claim())
    assert table.record(task_id)["postponed_ms"] == "0"


def test_adopt_hands_over_what_the_worker_does_not_know_at_no_attempt(table: Table) -> None:
    known_id, unseen_id = table.submit(), table.submit()
    known, unseen = table.take().claims
    adopted = table.adopt("w1", known).claims
    assert [(claim.task_id, claim.attempt, claim.lease) for claim in adopted] == [(unseen_id, 1, 2)]
    assert table.succeed(unseen).code is Code.LOST
    assert table.succeed(known).code is Code.OK
    assert known.task_id == known_id
    assert table.adopt("w2").claims == []


def test_a_reclaim_counts_the_crash_as_an_ended_attempt(table: Table) -> None:
    task_id = table.submit()
    table.claim("w1")
    claim = table.reclaim("w2", idle_ms=0).claims[0]
    assert (claim.attempt, claim.crashes) == (2, 1)
    assert [(a.attempt, a.worker, a.outcome) for a in table.attempts(task_id)] == [
        (1, "w1", "crashed")
    ]


def test_a_task_that_crashes_on_every_attempt_ends(table: Table) -> None:
    task_id = table.submit(max_attempts=3)
    table.claim("w1")
    while table.status(task_id) is Status.RUNNING:
        table.reclaim("w2", idle_ms=0)
    assert table.status(task_id) is Status.DEAD_LETTERED
    assert [a.outcome for a in table.attempts(task_id)] == ["crashed"] * 3
    assert table.record(task_id)["error"] == "worker lost on attempt 3 of 3"
    assert (table.pending(), table.length()) == (0, 0)


def test_abandoned_work_is_taken_at_once_and_its_consumer_is_gone(table: Table) -> None:
    task_id = table.submit()
    table.claim("w1")
    assert table.abandon("w1") == (1, 0)
    assert "w1" not in table.consumers()
    assert table.reclaim("w2").claims[0].task_id == task_id


def test_what_was_abandoned_after_it_was_given_back_is_found(table: Table) -> None:
    task_id = table.submit()
    table.release(table.claim("w1"))
    assert table.abandon("w1") == (0, 0)
    assert table.abandon("w1") == (0, 0)
    claim = table.reclaim("w2").claims[0]
    assert (claim.task_id, claim.attempt, claim.crashes) == (task_id, 1, 0)


def test_a_consumer_with_pending_entries_is_never_deleted(table: Table) -> None:
    for _ in range(3):
        table.submit()
    table.take("w1")
    call = table.calls.abandon("w1", table.bands)
    partly = [*call.args[:2], 2, *call.args[3:]]
    moved, left = table.redis("EVAL", call.script.text, 1, call.prefix, *partly)
    assert (moved, left > 0, "w1" in table.consumers()) == (2, True, True)
    assert table.abandon("w1") == (1, 0)
    assert len(table.reclaim("w2").claims) == 3


def test_the_cursor_passes_a_long_list_of_live_entries(table: Table) -> None:
    """Redis looks at a thousand entries a call, and the overdue one is the last of more."""
    for _ in range(3):
        table.submit_all(*(table.submission() for _ in range(500)))
    while table.take("w1", 500).claims:
        pass
    overdue = table.submit()
    dead = table.claim("w2")
    table.redis("XCLAIM", table.stream(), "workers", "w2", 0, dead.entry_id, "IDLE", LONG_MS)
    assert table.reclaim("w3", slots=1).claims == []
    assert [claim.task_id for claim in table.reclaim("w3", slots=1).claims] == [overdue]


def test_a_worker_that_still_beats_is_not_abandoned_on_suspicion(table: Table) -> None:
    table.submit()
    claim = table.claim("w1")
    table.beat("w1")
    before = table.snapshot()
    suspicion = table.calls.abandon("w1", table.bands, seen_dead=False)
    assert table.store.run(suspicion) == (0, 0)
    assert table.snapshot() == before
    table.redis("DEL", table.keys.worker("w1"))
    assert table.store.run(suspicion) == (1, 0)
    assert table.reclaim("w2").claims[0].task_id == claim.task_id
