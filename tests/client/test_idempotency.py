"""One idempotency key, one task: however often, from wherever and at whatever moment it is used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from client.tasks import add, anything
from dtq import Status
from dtq_core.errors import CorruptDataError, IdempotencyConflictError
from support.eventually import eventually
from support.hand import Hand

AT_ONCE = 50


def test_the_same_request_again_is_the_same_task(client: Any, hand: Hand) -> None:
    keyed = add.options(idempotency_key="order-7")
    first = client.submit(keyed, 1, right=2)
    again = client.submit(keyed, 1, 2)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.id == first.id
    assert hand.entries() == [first.id]


def test_it_is_still_the_same_task_when_that_has_ended(client: Any, hand: Hand) -> None:
    keyed = add.options(idempotency_key="order-7")
    first = client.submit(keyed, 1)
    hand.run_all(1, 41)
    again = client.submit(keyed, 1)
    assert (again.id, again.duplicate) == (first.id, True)
    assert again.result(timeout=5) == 41


def test_by_name_and_by_handler_are_the_same_request(client: Any) -> None:
    first = client.submit(add.options(idempotency_key="k"), 1, 2)
    again = client.submit_by_name("add", (1, 2), idempotency_key="k")
    assert (again.id, again.duplicate) == (first.id, True)


@pytest.mark.parametrize(
    "other",
    [
        lambda c: c.submit(add.options(idempotency_key="k"), 2),
        lambda c: c.submit(anything.options(idempotency_key="k"), 1),
        lambda c: c.submit(add.options(idempotency_key="k", queue="mail"), 1),
    ],
    ids=["arguments", "task", "queue"],
)
def test_another_request_under_the_key_is_refused(client: Any, hand: Hand, other: Any) -> None:
    owner = client.submit(add.options(idempotency_key="k"), 1)
    with pytest.raises(IdempotencyConflictError, match=f"'k' belongs to task {owner.id}") as caught:
        other(client)
    assert caught.value.task_id == owner.id
    assert hand.entries() == [owner.id]


@pytest.mark.parametrize("settings", [1, 3], indirect=True)
def test_fifty_at_once_are_one_task(client: Any, hand: Hand) -> None:
    keyed = add.options(idempotency_key="order-7")
    barrier = Barrier(AT_ONCE)

    def submit(_: int) -> Any:
        barrier.wait(10)
        return client.submit(keyed, 1)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        handles = list(pool.map(submit, range(AT_ONCE)))
    assert len({handle.id for handle in handles}) == 1
    assert sum(not handle.duplicate for handle in handles) == 1
    assert hand.entries() == [handles[0].id]


def test_a_key_is_free_again_after_its_time(make_client: Any, hand: Hand) -> None:
    client = make_client(idempotency_ttl=0.1)
    keyed = add.options(idempotency_key="k")
    first = client.submit(keyed, 1)
    key = hand.store.keys_of(first.id).idempotency("k")
    assert hand.command("PTTL", key) == -1, "its task has not ended"
    hand.run_all(1)
    eventually("the end of the key", lambda: not hand.command("EXISTS", key))
    second = client.submit(keyed, 2)
    assert second.id != first.id
    assert not second.duplicate


def test_a_key_whose_task_is_gone_is_free(client: Any, hand: Hand) -> None:
    keyed = add.options(idempotency_key="k")
    first = client.submit(keyed, 1)
    hand.run_all(1)
    hand.command("DEL", hand.store.keys_of(first.id).task(first.id))
    second = client.submit(keyed, 2)
    assert (second.duplicate, second.status()) == (False, Status.QUEUED)


def test_the_key_of_a_failed_task_stays_taken(client: Any, hand: Hand) -> None:
    keyed = add.options(idempotency_key="k")
    first = client.submit(keyed, 1)
    hand.fail(hand.claim()[0])
    again = client.submit(keyed, 1)
    assert (again.id, again.duplicate) == (first.id, True)


def test_a_foreign_key_in_its_place_is_left_alone(client: Any, hand: Hand) -> None:
    foreign = hand.store.partitions.all[0].idempotency("k")
    hand.command("SET", foreign, "not dtq's")
    with pytest.raises(CorruptDataError):
        client.submit(add.options(idempotency_key="k"), 1)
    assert hand.command("GET", foreign) == b"not dtq's"
    assert hand.entries() == []
