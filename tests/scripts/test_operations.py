"""The record of a guarded operation: who may begin it, who may end it, and what is in doubt."""

from __future__ import annotations

import pytest

from dtq_core.record import Claim
from dtq_core.scripts import Code
from scripts.table import LONG_MS, Table

pytestmark = pytest.mark.ledger_checked


@pytest.fixture
def claim(table: Table) -> Claim:
    table.submit()
    return table.claim()


def again(table: Table, claim: Claim) -> Claim:
    """End the attempt, and begin the next one."""
    table.retry(claim)
    table.promote("retry")
    return table.claim()


def record(table: Table, claim: Claim) -> object:
    return table.redis("HGETALL", table.keys.operation(claim.task_id, "charge"))


def test_what_is_done_stays_done_in_later_attempts(table: Table, claim: Claim) -> None:
    assert table.op_begin(claim) == (Code.OK, b"")
    assert table.op_end(claim, b'"paid"') is Code.OK
    assert table.op_begin(again(table, claim), "n2") == (Code.DONE, b'"paid"')


def test_a_result_that_could_not_be_kept_is_done_all_the_same(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    table.op_end(claim, b"")
    assert table.op_begin(claim, "n2") == (Code.DONE, b"")


def test_what_failed_is_begun_anew(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    assert table.op_end(claim, None) is Code.OK
    assert table.op_begin(again(table, claim), "n2").code is Code.OK


def test_a_run_that_was_cut_off_leaves_the_next_one_in_doubt(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    before = record(table, claim)
    later = table.reclaim("w2", idle_ms=0).claims[0]
    assert table.op_begin(later, "n2").code is Code.DOUBT
    assert record(table, claim) == before
    assert table.op_begin(later, "n2", rerun=True).code is Code.DOUBT
    assert table.op_end(later, b"2", "n2") is Code.OK


def test_a_run_cut_off_within_the_attempt_leaves_the_next_one_in_doubt(
    table: Table, claim: Claim
) -> None:
    table.op_begin(claim)
    assert table.op_begin(claim, "n2").code is Code.DOUBT


def test_a_doubt_outlives_a_later_run_that_fails(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    table.op_begin(claim, "n2", rerun=True)
    assert table.op_end(claim, None, "n2") is Code.OK
    assert table.op_begin(claim, "n3").code is Code.DOUBT


def test_the_same_run_gets_the_same_answer(table: Table, claim: Claim) -> None:
    assert [table.op_begin(claim).code for _ in range(2)] == [Code.OK, Code.OK]
    doubts = [table.op_begin(claim, "n2", rerun=True).code for _ in range(2)]
    assert doubts == [Code.DOUBT, Code.DOUBT]
    assert [table.op_end(claim, b"1", "n2") for _ in range(2)] == [Code.OK, Code.AGAIN]


def test_a_failure_that_is_told_twice_clears_once(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    assert [table.op_end(claim, None) for _ in range(2)] == [Code.OK, Code.AGAIN]


def test_an_attempt_that_is_not_the_current_one_begins_and_ends_nothing(
    table: Table, claim: Claim
) -> None:
    table.op_begin(claim)
    table.reclaim("w2", idle_ms=0)
    before = record(table, claim)
    assert table.op_begin(claim, "n2", rerun=True).code is Code.LOST
    assert table.op_end(claim) is Code.LOST
    assert record(table, claim) == before


def test_a_run_that_another_one_has_taken_over_cannot_end_it(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    table.op_begin(claim, "n2", rerun=True)
    assert table.op_end(claim) is Code.LOST


def test_a_task_that_has_ended_begins_and_ends_nothing(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    table.succeed(claim)
    assert table.op_begin(claim, "n2").code is Code.LOST
    assert table.op_end(claim) is Code.LOST


def test_a_requeued_task_finds_what_it_has_done(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    table.op_end(claim)
    table.fail(claim)
    table.requeue(claim.task_id)
    assert table.op_begin(table.claim(), "n2").code is Code.DONE


def test_a_record_that_has_passed_meanwhile_is_written_at_the_end(
    table: Table, claim: Claim
) -> None:
    table.op_begin(claim)
    table.redis("DEL", table.keys.operation(claim.task_id, "charge"))
    assert table.op_end(claim) is Code.OK
    assert table.op_begin(claim, "n2").code is Code.DONE


def test_operations_of_one_task_are_apart(table: Table, claim: Claim) -> None:
    table.op_begin(claim)
    assert table.op_begin(claim, "n2", "mail").code is Code.OK


def test_every_record_passes(table: Table, claim: Claim) -> None:
    key = table.keys.operation(claim.task_id, "charge")
    table.op_begin(claim)
    assert 0 < table.ttl(key) <= LONG_MS
    table.op_end(claim)
    assert 0 < table.ttl(key) <= LONG_MS


def test_a_foreign_record_is_refused_and_left_alone(table: Table, claim: Claim) -> None:
    key = table.keys.operation(claim.task_id, "charge")
    table.redis("SET", key, "foreign", "EX", 60)
    assert table.op_begin(claim).code is Code.CORRUPT
    assert table.op_end(claim) is Code.CORRUPT
    assert table.redis("GET", key) == b"foreign"
