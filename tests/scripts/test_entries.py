"""Stream entries: taken in order and within bounds; stale ones are absorbed, never run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_core.limits import Band
from dtq_core.states import Status
from scripts.states import MAKERS
from scripts.table import Table

pytestmark = pytest.mark.ledger_checked


def _add_entry(table: Table, task_id: str, attempt: int = 1) -> None:
    table.redis("XADD", table.stream(), "*", "id", task_id, "attempt", attempt)


@pytest.mark.parametrize(
    "status", [status for status in MAKERS if status not in {Status.QUEUED, Status.RUNNING}]
)
def test_an_entry_of_a_task_that_needs_none_is_absorbed(status: Status, table: Table) -> None:
    task_id, _ = MAKERS[status](table)
    before = table.record(task_id)
    _add_entry(table, task_id)
    taken = table.take("w9")
    assert (taken.claims, taken.absorbed) == ([], 1)
    assert table.record(task_id) == before
    assert table.events()[-1] == "TASK_DUPLICATE_ABSORBED"
    assert (table.length(), table.pending()) == (0, 0)
    assert table.counters()["absorbed"] == 1


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_second_entry_of_a_queued_task_is_absorbed(attempt: int, table: Table) -> None:
    task_id = table.submit()
    _add_entry(table, task_id, attempt)
    taken = table.take()
    assert ([claim.task_id for claim in taken.claims], taken.absorbed) == ([task_id], 1)


def test_a_second_entry_of_a_running_task_is_absorbed(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    _add_entry(table, task_id)
    assert (table.take("w2").claims, table.reclaim("w2").claims) == ([], [])
    assert table.record(task_id)["lease"] == str(claim.lease)


@pytest.mark.parametrize("fields", [("id", "f" * 32), ("nonsense", "1"), ("id", "../odd:{}")])
def test_an_entry_without_a_record_is_absorbed_not_run(
    fields: tuple[str, str], table: Table
) -> None:
    table.submit(delay=600)
    table.redis("XADD", table.stream(), "*", *fields)
    taken = table.take()
    assert (taken.claims, taken.absorbed) == ([], 1)
    assert table.length() == 0


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.RETRYING])
def test_a_pending_entry_of_a_finished_attempt_is_absorbed_by_reclaim(
    status: Status, table: Table
) -> None:
    """The window after the hash and before the ACK: one script has closed it, so it is set up."""
    task_id, _ = MAKERS[status](table)
    before = table.record(task_id)
    _add_entry(table, task_id)
    entry = table.redis("XREADGROUP", "GROUP", "workers", "dead", "STREAMS", table.stream(), ">")
    table.redis("HSET", table.keys.task(task_id), "entry_id", entry[0][1][0][0])
    taken = table.reclaim("w2", idle_ms=0)
    assert (taken.claims, taken.absorbed) == ([], 1)
    assert {**table.record(task_id), "entry_id": ""} == {**before, "entry_id": ""}
    assert (table.length(), table.pending()) == (0, 0)


def test_the_group_begins_with_the_first_entry_whoever_comes_late(table: Table) -> None:
    ids = [table.submit() for _ in range(3)]
    assert [claim.task_id for claim in table.take().claims] == ids


@pytest.mark.parametrize(
    "hurt",
    [
        lambda table: table.redis("DEL", table.stream()),
        lambda table: table.redis("XGROUP", "DESTROY", table.stream(), "workers"),
    ],
)
def test_a_deleted_stream_or_group_is_made_again(
    hurt: Callable[[Table], object], table: Table
) -> None:
    table.submit()
    table.succeed(table.claim())
    hurt(table)
    task_id = table.submit()
    assert table.claim().task_id == task_id


def test_bands_are_read_in_the_order_asked_for(table: Table) -> None:
    ids = {band: table.submit(band=band) for band in reversed(Band)}
    assert [claim.task_id for claim in table.take().claims] == [ids[band] for band in Band]


def test_no_more_is_taken_than_there_are_slots(table: Table) -> None:
    for _ in range(30):
        table.submit()
    sizes = [len(table.take(slots=slots).claims) for slots in (1, 7, 20, 20)]
    assert sizes == [1, 7, 20, 2]
    assert table.pending() == 30


def test_large_payloads_are_taken_a_few_at_a_time_and_none_is_lost(table: Table) -> None:
    payload = b'[["' + b"x" * 900_000 + b'"],{}]'
    ids = {table.submit(payload) for _ in range(12)}
    taken = table.take(slots=12).claims
    assert 1 <= len(taken) < 12
    assert sum(len(claim.payload) for claim in taken[:-1]) <= 4_194_304
    while len(taken) < 12:
        more = table.reclaim("w1", slots=12).claims + table.take(slots=12).claims
        assert more, "nothing is to be had any more"
        taken += more
    assert {claim.task_id for claim in taken} == ids
    assert all(claim.attempt == 1 for claim in taken)


def test_a_reclaim_takes_large_payloads_a_few_at_a_time_and_loses_none(table: Table) -> None:
    payload = b'[["' + b"x" * 900_000 + b'"],{}]'
    ids = {table.submit(payload) for _ in range(7)}
    while table.take("dead", slots=7).claims:
        pass
    table.abandon("dead")
    first = table.reclaim("w1", slots=7).claims
    assert 1 <= len(first) < 7
    assert b"o" in table.tokens()
    assert {claim.task_id for claim in first + table.reclaim("w1", slots=7).claims} == ids


def test_a_reclaim_takes_bands_in_the_order_asked_for(table: Table) -> None:
    ids = {band: table.submit(band=band) for band in reversed(Band)}
    table.take("dead")
    table.abandon("dead")
    assert [claim.task_id for claim in table.reclaim("w2").claims] == [ids[band] for band in Band]


def test_a_submitted_task_leaves_a_token_and_a_drained_queue_has_none(table: Table) -> None:
    table.submit()
    assert table.tokens() == [b"n"]
    assert 0 < table.ttl(table.keys.wake("q")) <= 10_000
    table.take(slots=2)
    assert table.tokens() == []


def test_tokens_are_capped(table: Table) -> None:
    for _ in range(2):
        table.submit_all(*(table.submission() for _ in range(300)))
        assert len(table.tokens()) == 128


def test_tokens_for_overdue_work_are_capped(table: Table) -> None:
    table.submit_all(*(table.submission() for _ in range(300)))
    while table.take("dead", slots=300).claims:
        pass
    table.abandon("dead")
    assert table.tokens() == [b"o"] * 128


def test_a_claim_that_leaves_tasks_behind_passes_a_token_on(table: Table) -> None:
    for _ in range(3):
        table.submit()
    table.redis("DEL", table.keys.wake("q"))
    table.take(slots=2)
    assert table.tokens() == [b"n"]


def test_what_was_given_back_wakes_a_reclaim(table: Table) -> None:
    table.submit()
    table.release(table.claim())
    assert b"o" in table.tokens()


def test_a_reclaim_that_finds_nothing_more_leaves_no_token_for_it(table: Table) -> None:
    for _ in range(3):
        table.submit()
    for claim in table.take().claims:
        table.release(claim)
    assert len(table.reclaim("w2").claims) == 3
    assert b"o" not in table.tokens()


def test_a_token_for_overdue_work_comes_before_new_work(table: Table) -> None:
    table.submit()
    table.release(table.claim())
    table.submit()
    taken = table.take("w2")
    assert (taken.claims, taken.overdue) == ([], True)
    assert len(table.reclaim("w2").claims) == 1


def test_a_member_in_the_wrong_schedule_is_dropped_from_it(table: Table) -> None:
    task_id = table.submit()
    table.redis("ZADD", table.keys.retry_schedule, 1, task_id)
    assert table.promote("retry").moved == 0
    assert (table.length(), table.record(task_id)["attempt"]) == (1, "1")


def test_promotion_says_when_the_next_is_due(table: Table) -> None:
    assert table.promote("delay").next_ms == -1
    table.submit(delay=600)
    assert 590_000 < table.promote("delay").next_ms <= 600_000


def test_a_queue_full_of_stale_entries_is_cleared_a_bounded_number_at_a_time(table: Table) -> None:
    for _ in range(4):
        table.submit_all(*(table.submission(ttl=0) for _ in range(500)))
    good = table.submit()
    looks = 0
    while not (claims := table.take().claims):
        looks += 1
        assert table.length() <= 2001 - 500 * looks
        assert table.tokens(), "nobody is told that more waits"
    assert looks >= 3
    assert [claim.task_id for claim in claims] == [good]
    assert table.counters()["EXPIRED"] == 2000


def test_a_running_task_keeps_its_entry_when_the_group_is_made_again(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim("w1")
    table.redis("XGROUP", "DESTROY", table.stream(), "workers")
    taken = table.take("w2")
    assert (taken.claims, taken.absorbed, table.length()) == ([], 0, 1)
    assert table.record(task_id)["lease"] == str(claim.lease)
    assert table.reclaim("w3", idle_ms=0).claims[0].task_id == task_id


def test_what_was_given_back_is_found_however_much_is_running(table: Table) -> None:
    for _ in range(400):
        table.submit()
    while table.take("w1", 100).claims:
        pass
    task_id = table.submit()
    table.claim("dead")
    table.abandon("dead")
    assert [claim.task_id for claim in table.reclaim("w2", slots=1).claims] == [task_id]
