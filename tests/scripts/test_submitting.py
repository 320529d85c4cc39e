"""Submitting: once, however often it is sent; under a key, one task; nothing expires too early."""

from __future__ import annotations

import pytest

from dtq_core.scripts import Code
from dtq_core.states import Status
from scripts.table import LONG_MS, Table

pytestmark = pytest.mark.ledger_checked


def test_a_waiting_task_has_exactly_these_keys(table: Table) -> None:
    task_id = table.submit()
    assert set(table.snapshot()) == {
        *(f"task:{task_id}", "stream:q:normal", "events", "queues", "stats:q", "wake:q")
    }
    record = table.record(task_id)
    assert record.pop("entry_id")
    assert record.pop("submitted_ms") == record.pop("queued_ms")
    assert record == {
        "status": "QUEUED",
        "queue": "q",
        "band": "normal",
        "spec": '{"name":"name"}',
        "payload": "[[1],{}]",
        "attempt": "1",
        "max_attempts": "3",
    }


def test_a_delayed_task_is_in_the_schedule_and_nowhere_else(table: Table) -> None:
    task_id = table.submit(delay=600)
    assert table.status(task_id) is Status.SCHEDULED
    due = float(table.redis("ZSCORE", table.keys.delay_schedule, task_id))
    assert due == float(table.record(task_id)["due_ms"])
    assert due - float(table.record(task_id)["submitted_ms"]) == 600_000
    assert table.redis("EXISTS", table.stream()) == 0


def test_a_repeated_submit_is_the_same_task(table: Table) -> None:
    submission = table.submission()
    table.submit_all(submission)
    before = table.snapshot()
    answer = table.submit_all(submission)[0]
    assert answer == (Code.AGAIN, submission.task_id, "QUEUED")
    assert table.snapshot() == before


def test_a_repeated_submit_under_a_key_is_the_same_task(table: Table) -> None:
    submission = table.submission(idempotency_key="k")
    table.submit_all(submission)
    assert table.submit_all(submission)[0].code is Code.AGAIN


def test_a_key_leads_to_its_task_until_it_ends_and_after(table: Table) -> None:
    task_id = table.submit(idempotency_key="k")
    key = table.keys.idempotency("k")
    assert table.submit_all(table.submission(idempotency_key="k"))[0] == (
        Code.DUPLICATE,
        task_id,
        "processing",
    )
    assert table.ttl(key) == -1
    table.succeed(table.claim())
    assert table.submit_all(table.submission(idempotency_key="k"))[0] == (
        Code.DUPLICATE,
        task_id,
        "completed",
    )
    assert 0 < table.ttl(key) <= 86_400_000


def test_a_key_of_a_task_that_did_not_succeed_is_failed(table: Table) -> None:
    for end in ("fail", "cancel"):
        task_id = table.submit(idempotency_key=end)
        if end == "fail":
            table.fail(table.claim())
        else:
            table.cancel(task_id)
        assert table.redis("HGET", table.keys.idempotency(end), "state") == b"failed"
        assert table.ttl(table.keys.idempotency(end)) > 0


def test_a_key_stays_processing_while_its_task_is_retried(table: Table) -> None:
    table.submit(idempotency_key="k")
    table.retry(table.claim(), LONG_MS)
    assert table.redis("HGET", table.keys.idempotency("k"), "state") == b"processing"
    assert table.ttl(table.keys.idempotency("k")) == -1


def test_a_key_with_another_request_is_a_conflict_and_writes_nothing(table: Table) -> None:
    task_id = table.submit(idempotency_key="k")
    before = table.snapshot()
    answer = table.submit_all(table.submission(b"[[2],{}]", idempotency_key="k"))[0]
    assert (answer.code, answer.task_id) == (Code.CONFLICT, task_id)
    assert table.snapshot() == before


def test_a_key_whose_task_was_deleted_is_free(table: Table) -> None:
    gone = table.submit(idempotency_key="k")
    table.succeed(table.claim())
    for key in (table.keys.task(gone), table.keys.attempts(gone), table.keys.result(gone)):
        table.redis("DEL", key)
    again = table.submit_all(table.submission(idempotency_key="k"))[0]
    assert again.code is Code.OK
    assert table.redis("HGET", table.keys.idempotency("k"), "task").decode() == again.task_id
    assert table.ttl(table.keys.idempotency("k")) == -1


def test_two_submissions_of_one_batch_under_one_key_are_one_task(table: Table) -> None:
    first, second = (table.submission(idempotency_key="k") for _ in range(2))
    answers = table.submit_all(first, second)
    assert [answer.code for answer in answers] == [Code.OK, Code.DUPLICATE]
    assert answers[1].task_id == first.task_id


def test_no_record_expires_before_its_task_has_ended(table: Table) -> None:
    task_id = table.submit(result_ttl=1)
    record, attempts = table.keys.task(task_id), table.keys.attempts(task_id)
    assert table.ttl(record) == -1
    table.retry(table.claim())
    table.promote("retry")
    assert (table.ttl(record), table.ttl(attempts)) == (-1, -1)
    table.succeed(table.claim())
    assert table.ttl(record) > 0
    assert table.ttl(attempts) > 0
    assert table.ttl(table.keys.result(task_id)) > 0


def test_a_dead_lettered_task_never_expires(table: Table) -> None:
    task_id = table.submit()
    table.fail(table.claim())
    assert table.ttl(table.keys.task(task_id)) == -1
    assert table.ttl(table.keys.attempts(task_id)) == -1
    (entry,) = table.redis("XRANGE", table.keys.dlq, "-", "+")
    assert entry[1][:2] == [b"id", task_id.encode()]


def test_retention_outlives_result_and_key(table: Table) -> None:
    long_s = 10 * 86_400
    task_id = table.submit(result_ttl=long_s)
    table.succeed(table.claim())
    assert table.ttl(table.keys.task(task_id)) > (long_s - 60) * 1000


def test_cancel_says_what_it_found(table: Table) -> None:
    waiting, running_id, ended = table.submit(delay=600), table.submit(), table.submit(delay=600)
    table.cancel(ended)
    table.claim()
    before = table.snapshot()
    unknown = "f" * 28 + "0000"
    assert table.cancel(unknown)[0].code is Code.UNKNOWN
    assert table.snapshot() == before
    answers = table.cancel(waiting, running_id, ended)
    assert [answer.code for answer in answers] == [Code.OK, Code.REQUESTED, Code.AGAIN]
    assert table.cancel(running_id)[0].code is Code.REQUESTED
    assert table.events().count("TASK_CANCEL_REQUESTED") == 1


def test_a_cancel_tells_the_worker_by_its_next_heartbeat(table: Table) -> None:
    assert table.beat("w1").cancels == 0
    task_id = table.submit()
    table.claim("w1")
    table.cancel(task_id)
    assert table.beat("w1").cancels == 1


def test_asked_to_cancel_a_task_may_still_succeed_but_is_not_tried_again(table: Table) -> None:
    first, second = table.submit(), table.submit()
    done, broken = table.take().claims
    table.cancel(first, second)
    assert table.succeed(done).status == Status.SUCCEEDED
    assert table.retry(broken).status == Status.CANCELLED
    assert table.redis("ZCARD", table.keys.retry_schedule) == 0


def test_a_ttl_ends_a_task_only_while_it_waits(table: Table) -> None:
    task_id = table.submit(ttl=600)
    assert table.redis("ZSCORE", table.keys.expiry, task_id) is not None
    claim = table.claim()
    assert table.redis("ZSCORE", table.keys.expiry, task_id) is None
    table.retry(claim, LONG_MS)
    assert table.redis("ZSCORE", table.keys.expiry, task_id) is not None
