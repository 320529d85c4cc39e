"""What scripts decide by the clock, to the millisecond; the test turns the clock."""

from __future__ import annotations

import pytest

from dtq_core.states import Status
from scripts.table import Table
from support.clock import BEGIN_MS, Clock

pytestmark = pytest.mark.ledger_checked


def test_a_delayed_task_is_due_to_the_millisecond(timed: Table, clock: Clock) -> None:
    task_id = timed.submit(delay=10)
    clock.turn(9_999)
    assert timed.promote("delay") == (0, 0, 0, 1)
    assert timed.status(task_id) is Status.SCHEDULED
    clock.turn(1)
    assert timed.promote("delay") == (1, 0, 1, -1)
    assert timed.status(task_id) is Status.QUEUED


def test_a_retry_is_due_to_the_millisecond_and_counts_there(timed: Table, clock: Clock) -> None:
    task_id = timed.submit()
    timed.retry(timed.claim(), 5_000)
    clock.turn(4_999)
    assert timed.promote("retry") == (0, 0, 0, 1)
    assert timed.record(task_id)["attempt"] == "1"
    clock.turn(1)
    assert timed.promote("retry").moved == 1
    assert timed.claim().attempt == 2


def test_a_delay_that_ends_counts_no_attempt(timed: Table, clock: Clock) -> None:
    timed.submit(delay=10)
    clock.turn(10_000)
    timed.promote("delay")
    assert timed.claim().attempt == 1


@pytest.mark.parametrize(("waited_ms", "status"), [(999, Status.RUNNING), (1000, Status.EXPIRED)])
def test_a_queued_task_may_start_until_its_ttl_ends(
    waited_ms: int, status: Status, timed: Table, clock: Clock
) -> None:
    task_id = timed.submit(ttl=1)
    clock.turn(waited_ms)
    timed.take()
    assert timed.status(task_id) is status


def test_a_ttl_that_ends_is_swept_to_the_millisecond(timed: Table, clock: Clock) -> None:
    task_id = timed.submit(ttl=1)
    clock.turn(999)
    assert timed.expire() == (0, 0, 0, 1)
    clock.turn(1)
    assert timed.expire() == (1, 0, 1, -1)
    assert timed.status(task_id) is Status.EXPIRED


def test_a_ttl_goes_on_while_a_task_is_retried(timed: Table, clock: Clock) -> None:
    task_id = timed.submit(ttl=10)
    timed.retry(timed.claim(), 60_000)
    clock.turn(10_000)
    assert timed.expire().moved == 1
    assert timed.status(task_id) is Status.EXPIRED


def test_a_ttl_stops_no_task_that_has_started(timed: Table, clock: Clock) -> None:
    task_id = timed.submit(ttl=1)
    claim = timed.claim()
    clock.turn(60_000)
    assert timed.expire().seen == 0
    assert timed.reclaim("w2", idle_ms=0).claims[0].attempt == 2
    assert timed.adopt("w2").claims[0].lease == claim.lease + 2
    assert timed.status(task_id) is Status.RUNNING


def test_both_end_at_once_and_the_ttl_wins(timed: Table, clock: Clock) -> None:
    task_id = timed.submit(delay=10, ttl=10)
    clock.turn(10_000)
    assert timed.promote("delay").moved == 0
    assert timed.status(task_id) is Status.EXPIRED


def test_the_record_tells_when_what_happened(timed: Table, clock: Clock) -> None:
    task_id = timed.submit(delay=1)
    for step in (lambda: timed.promote("delay"), timed.claim):
        clock.turn(1_000)
        claim = step()
    clock.turn(1_000)
    timed.succeed(claim)
    record = timed.record(task_id)
    names = ("submitted_ms", "due_ms", "queued_ms", "started_ms", "finished_ms")
    assert [int(record[name]) - BEGIN_MS for name in names] == [0, 1_000, 1_000, 2_000, 3_000]
    (attempt,) = timed.attempts(task_id)
    assert (attempt.started_at, attempt.ended_at) == (
        "2033-05-18T03:33:22.000Z",
        "2033-05-18T03:33:23.000Z",
    )


def test_a_postponed_task_remembers_when_it_first_was(timed: Table, clock: Clock) -> None:
    timed.submit()
    for _ in range(3):
        clock.turn(500)
        timed.release(timed.claim(), delay_ms=500)
        clock.turn(500)
        timed.promote("delay")
    claim = timed.claim()
    assert (claim.postponed_ms, claim.attempt, claim.releases) == (BEGIN_MS + 500, 1, 3)


def test_a_clock_that_goes_back_delays_and_loses_nothing(timed: Table, clock: Clock) -> None:
    task_id = timed.submit()
    clock.turn(-3_600_000)
    timed.retry(timed.claim(), 0)
    assert timed.promote("retry").moved == 1
    timed.succeed(timed.claim())
    assert timed.status(task_id) is Status.SUCCEEDED


@pytest.mark.parametrize("schedule", ["delay", "retry"])
def test_what_is_due_is_promoted_oldest_first_a_bounded_number_at_a_time(
    schedule: str, timed: Table, clock: Clock
) -> None:
    ids = []
    for number in range(2):
        ids += timed.submit_all(*(timed.submission(delay=10 + number) for _ in range(300)))
    if schedule == "retry":
        clock.turn(20_000)
        timed.promote("delay")
        timed.promote("delay")
        while claims := timed.take(slots=300).claims:
            for claim in claims:
                timed.retry(claim, 1)
    clock.turn(20_000)
    assert [timed.promote(schedule).moved for _ in range(3)] == [500, 100, 0]
    assert timed.length() == 600


VISIBILITY_MS = 10_000


def silent(table: Table, worker: str = "w1") -> str:
    """Submit a task; a worker takes it and is not heard of for a long time."""
    task_id = table.submit()
    entry = table.claim(worker).entry.rpartition(":")[2]
    idle = ("IDLE", 10 * VISIBILITY_MS, "JUSTID")
    table.redis("XCLAIM", table.stream(), "workers", worker, 0, entry, *idle)
    return task_id


@pytest.mark.parametrize(
    ("late_ms", "since_ms", "taken"),
    [(5_000, 0, True), (5_001, 0, False), (5_001, 4_999, False), (5_001, 5_000, True)],
)
def test_a_worker_whose_heartbeat_was_late_leaves_others_the_time_to_renew(
    late_ms: int, since_ms: int, taken: bool, timed: Table, clock: Clock
) -> None:
    silent(timed)
    timed.beat("w2", VISIBILITY_MS)
    clock.turn(late_ms)
    timed.beat("w2", VISIBILITY_MS)
    for _ in range(10):
        clock.turn(since_ms // 10 or 0)
        timed.beat("w2", VISIBILITY_MS)
    clock.turn(since_ms % 10)
    assert bool(timed.reclaim("w2", idle_ms=VISIBILITY_MS).claims) is taken


def test_a_reclaim_that_waited_in_the_server_takes_nothing_of_others(
    timed: Table, clock: Clock
) -> None:
    silent(timed)
    timed.beat("w2", VISIBILITY_MS)
    clock.turn(5_001)
    assert timed.reclaim("w2", idle_ms=VISIBILITY_MS).claims == []


def test_a_worker_that_has_just_come_reclaims_at_once(timed: Table) -> None:
    silent(timed)
    timed.beat("w2", VISIBILITY_MS)
    assert len(timed.reclaim("w2", idle_ms=VISIBILITY_MS).claims) == 1


def test_what_was_given_back_is_taken_however_late_the_heartbeat_was(
    timed: Table, clock: Clock
) -> None:
    timed.submit()
    timed.release(timed.claim())
    timed.beat("w2", VISIBILITY_MS)
    clock.turn(60_000)
    assert len(timed.reclaim("w2", idle_ms=VISIBILITY_MS).claims) == 1
