"""What became of a task: its record, its result, why it has none, its attempts."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import pytest

from client.tasks import Invoice, add, anything, invoice
from dtq import Status
from dtq_core.errors import (
    CorruptDataError,
    ResultExpiredError,
    ResultTimeoutError,
    TaskCancelledError,
    TaskExpiredError,
    TaskFailedError,
    TaskNotFoundError,
)
from support.hand import WORKER, Hand

NOBODY = "0" * 32
JSON = [None, True, 0, -1.5, "", "é\n\0", [], {}, [[1], {"a": None}], 2**63, 10**30]


def test_a_result_is_of_the_type_that_the_handler_returns(client: Any, hand: Hand) -> None:
    handle = client.submit(invoice, 7)
    hand.run_all(1, Invoice(7, date(2030, 1, 1)))
    assert handle.result(timeout=5) == Invoice(7, date(2030, 1, 1))
    assert client.result(handle.id, 5, task=invoice) == Invoice(7, date(2030, 1, 1))
    assert client.result(handle.id, 5) == {"number": 7, "due": "2030-01-01"}
    assert client.handle(handle.id).result(5) == {"number": 7, "due": "2030-01-01"}


@pytest.mark.parametrize("value", JSON, ids=repr)
def test_json_values_come_back_as_they_were(client: Any, hand: Hand, value: Any) -> None:
    handle = client.submit(anything, value)
    (claim,) = hand.claim()
    hand.succeed(claim, anything.decode(claim.payload)[0][0])
    assert handle.result(timeout=5) == value


def test_a_result_that_is_there_needs_no_time(client: Any, hand: Hand) -> None:
    before = hand.subscribers()
    handle = client.submit(add, 1)
    hand.run_all(1, 1)
    assert handle.result(timeout=0) == 1
    assert hand.subscribers() == before


@pytest.mark.parametrize("timeout", [0, 0.1])
def test_a_task_that_has_not_ended_in_time(client: Any, timeout: float) -> None:
    handle = client.submit(add, 1)
    start = time.monotonic()
    with pytest.raises(ResultTimeoutError, match=f"{handle.id} had not ended after {timeout} s"):
        handle.result(timeout=timeout)
    assert timeout <= time.monotonic() - start < timeout + 5
    assert not handle.status().terminal


def test_the_end_may_come_while_somebody_waits(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    with pytest.raises(ResultTimeoutError):
        handle.result(timeout=0.05)
    hand.run_all(1, 1)
    assert handle.result(timeout=5) == 1


@pytest.mark.parametrize("method", ["get", "result", "attempts"])
def test_a_task_that_nobody_submitted(client: Any, method: str) -> None:
    with pytest.raises(TaskNotFoundError, match=f"no task {NOBODY}") as caught:
        getattr(client, method)(NOBODY)
    assert caught.value.task_id == NOBODY


def test_a_task_that_failed_says_why(client: Any, hand: Hand) -> None:
    handle = client.submit(add.options(dead_letter=False), 1)
    hand.fail(hand.claim()[0], "the disk is full")
    with pytest.raises(TaskFailedError, match="is FAILED: ValueError: the disk is full") as caught:
        handle.result()
    assert (caught.value.task_id, caught.value.status) == (handle.id, Status.FAILED)
    assert handle.info().error == "ValueError: the disk is full"


def test_a_dead_lettered_task_has_failed(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    hand.fail(hand.claim()[0])
    with pytest.raises(TaskFailedError, match="is DEAD_LETTERED: ValueError: no luck"):
        handle.result(timeout=0)


def test_a_cancelled_task_has_no_result(client: Any) -> None:
    handle = client.submit(add, 1)
    handle.cancel("not needed")
    with pytest.raises(TaskCancelledError, match="is CANCELLED: not needed"):
        handle.result()


def test_an_expired_task_has_no_result(client: Any, hand: Hand) -> None:
    handle = client.submit(add.options(ttl=0), 1)
    hand.store.run(hand.store.calls_of(handle.id).expire())
    with pytest.raises(TaskExpiredError, match="is EXPIRED: not started before its TTL"):
        handle.result()


def test_a_result_that_is_no_longer_kept(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    hand.succeed(hand.claim()[0], 1)
    hand.command("DEL", hand.store.keys_of(handle.id).result(handle.id))
    with pytest.raises(ResultExpiredError, match=f"{handle.id} succeeded, but its result"):
        handle.result(timeout=0)
    assert handle.status() is Status.SUCCEEDED


def test_a_record_that_is_no_longer_kept(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    hand.run_all(1, 1)
    hand.command("DEL", hand.store.keys_of(handle.id).task(handle.id))
    with pytest.raises(TaskNotFoundError, match="or its retention is over"):
        handle.result(timeout=0)


@pytest.mark.parametrize("method", ["info", "status", "result", "cancel"])
def test_a_record_of_another_kind_is_refused(client: Any, hand: Hand, method: str) -> None:
    handle = client.submit(add, 1)
    hand.command("SET", hand.store.keys_of(handle.id).task(handle.id), "not dtq's")
    with pytest.raises(CorruptDataError):
        getattr(handle, method)()


def test_a_damaged_record_does_not_keep_a_waiter_busy(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    hand.command("HSET", hand.store.keys_of(handle.id).task(handle.id), "max_attempts", "many")
    with pytest.raises(CorruptDataError, match=handle.id):
        handle.result(timeout=30)


def test_attempts_are_told_oldest_first(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    assert handle.attempts() == []
    (claim,) = hand.claim()
    hand.retry(claim, delay_ms=0)
    hand.store.run(hand.store.calls_of(handle.id).promote("retry"))
    hand.run_all(1, 1)
    first, second = handle.attempts()
    assert (first.attempt, first.lease, first.worker, first.outcome) == (1, 1, WORKER, "retry")
    assert (first.error["type"], first.error["message"]) == ("ValueError", "not yet")
    assert first.started_at <= first.ended_at <= second.started_at
    assert (second.attempt, second.outcome, second.error) == (2, "succeeded", None)


def test_a_running_task_says_who_has_it(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    hand.claim()
    info = handle.info()
    assert (info.status, info.worker, info.attempt) == (Status.RUNNING, WORKER, 1)
    assert info.submitted_at <= info.started_at
    assert info.finished_at is None
