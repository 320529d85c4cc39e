"""What a cancel answers, in every status a task can have."""

from __future__ import annotations

from typing import Any

import pytest

from client.tasks import add
from dtq import CancelAnswer, Status
from support.hand import Hand

NOBODY = "0" * 32


def test_a_queued_task_is_cancelled_for_good(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    assert handle.cancel("not needed") is CancelAnswer.CANCELLED
    info = handle.info()
    assert (info.status, info.error) == (Status.CANCELLED, "not needed")
    assert hand.entries() == []


def test_a_delayed_task_is_cancelled_for_good(client: Any, hand: Hand) -> None:
    handle = client.submit(add.options(delay=60), 1)
    assert handle.cancel() is CancelAnswer.CANCELLED
    assert handle.info().error == "cancelled"
    assert hand.command("ZCARD", hand.store.keys_of(handle.id).delay_schedule) == 0


def test_a_task_between_two_attempts_is_cancelled_for_good(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    hand.retry(hand.claim()[0])
    assert handle.cancel() is CancelAnswer.CANCELLED
    assert handle.status() is Status.CANCELLED
    assert hand.command("ZCARD", hand.store.keys_of(handle.id).retry_schedule) == 0


def test_a_running_task_is_asked_to_stop(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    (claim,) = hand.claim()
    assert handle.cancel() is CancelAnswer.REQUESTED
    assert handle.cancel() is CancelAnswer.REQUESTED
    assert handle.info().cancel_requested_at is not None
    hand.cancelled(claim)
    assert handle.status() is Status.CANCELLED


def test_a_task_that_was_asked_to_stop_may_succeed_first(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    (claim,) = hand.claim()
    handle.cancel()
    hand.succeed(claim, 1)
    assert handle.result(timeout=5) == 1
    assert handle.cancel() is CancelAnswer.ENDED


def test_a_task_cancelled_twice_is_cancelled_both_times(client: Any) -> None:
    handle = client.submit(add, 1)
    assert [handle.cancel(), handle.cancel()] == [CancelAnswer.CANCELLED] * 2


def test_the_reason_of_a_cancel_stays_with_a_task_that_ran(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    (claim,) = hand.claim()
    handle.cancel("not wanted any more")
    hand.cancelled(claim)
    assert handle.info().error == "not wanted any more"


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_a_task_that_has_ended_stays_as_it_is(client: Any, hand: Hand, end: str) -> None:
    handle = client.submit(add, 1)
    getattr(hand, end)(hand.claim()[0])
    before = handle.info()
    assert handle.cancel() is CancelAnswer.ENDED
    assert handle.info() == before


def test_an_unknown_id_is_answered_and_leaves_no_mark(client: Any, hand: Hand) -> None:
    assert client.cancel(NOBODY) is CancelAnswer.UNKNOWN
    assert hand.keys() == set()
