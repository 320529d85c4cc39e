"""A connection cut at the worst moment costs nothing: the call is sent again, and is one task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from client.tasks import add
from dtq import CancelAnswer, Status
from dtq_core.scripts import CANCEL, SUBMIT
from dtq_core.settings import Settings
from support.hand import Hand
from support.proxy import Fault, Proxy, is_command, runs

FAULTS = pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
CUTS = pytest.mark.parametrize(
    "fault", [Fault.CUT_REPLY, Fault.CUT_REQUEST], ids=lambda fault: fault.name
)


@pytest.fixture
def proxy(settings: Settings) -> Iterator[Proxy]:
    assert settings.redis_url is not None
    with Proxy(settings.redis_url) as made:
        yield made


@pytest.fixture
def client(make_client: Any, proxy: Proxy) -> Any:
    """A client behind the proxy, soon tired of a server that says nothing."""
    return make_client(proxy.url, connect_timeout=0.15, retry_timeout=10)


@FAULTS
@pytest.mark.parametrize("nth", [1, 4])
def test_each_submit_is_one_task(
    client: Any, hand: Hand, proxy: Proxy, fault: Fault, nth: int
) -> None:
    proxy.arm(fault, runs(SUBMIT), nth=nth)
    handles = [client.submit(add, number) for number in range(5)]
    assert proxy.hits == 1
    assert not any(handle.duplicate for handle in handles)
    assert hand.entries() == [handle.id for handle in handles]


@CUTS
def test_each_of_many_is_one_task(client: Any, hand: Hand, proxy: Proxy, fault: Fault) -> None:
    proxy.arm(fault, runs(SUBMIT), nth=2)
    handles = client.submit_many(add, [(number,) for number in range(1_200)])
    assert proxy.hits == 1
    assert sorted(hand.entries()) == sorted(handle.id for handle in handles)


@CUTS
def test_a_keyed_submit_is_no_duplicate_of_itself(
    client: Any, hand: Hand, proxy: Proxy, fault: Fault
) -> None:
    proxy.arm(fault, runs(SUBMIT))
    handle = client.submit(add.options(idempotency_key="k"), 1)
    assert proxy.hits == 1
    assert not handle.duplicate
    assert client.submit(add.options(idempotency_key="k"), 1).duplicate
    assert hand.entries() == [handle.id]


@CUTS
def test_a_delayed_submit_is_scheduled_once(
    client: Any, hand: Hand, proxy: Proxy, fault: Fault
) -> None:
    proxy.arm(fault, runs(SUBMIT))
    handle = client.submit(add.options(delay=60), 1)
    assert hand.command("ZRANGE", hand.store.keys_of(handle.id).delay_schedule, 0, -1) == [
        handle.id.encode()
    ]


def test_a_submit_that_was_carried_out_long_ago_is_still_one_task(
    client: Any, hand: Hand, proxy: Proxy
) -> None:
    """Between the call and its repetition the task is taken, and ends."""
    proxy.arm(Fault.DROP_REPLY, runs(SUBMIT))
    handle = client.submit(add, 1)
    (claim,) = hand.claim()
    hand.succeed(claim, 1)
    submission = hand.store.calls[0].submit(
        [client.requests.of_task(add, (1,), {})._replace(task_id=handle.id)]
    )
    (answer,) = hand.store.run(submission)
    assert answer.status == Status.SUCCEEDED
    assert hand.entries() == []


@CUTS
def test_a_cancel_is_carried_out(client: Any, proxy: Proxy, fault: Fault) -> None:
    handle = client.submit(add, 1)
    client.cancel("0" * 32)  # the script is loaded
    proxy.arm(fault, runs(CANCEL))
    answer = handle.cancel()
    assert proxy.hits == 1
    assert handle.status() is Status.CANCELLED
    assert answer is CancelAnswer.CANCELLED


@CUTS
def test_a_read_is_answered(client: Any, proxy: Proxy, fault: Fault) -> None:
    handle = client.submit(add, 1)
    proxy.arm(fault, is_command("HMGET"))
    assert handle.status() is Status.QUEUED
    assert proxy.hits == 1


@CUTS
def test_the_first_look_at_the_server_is_tried_again(
    client: Any, hand: Hand, proxy: Proxy, fault: Fault
) -> None:
    proxy.arm(fault, is_command("INFO"))
    handle = client.submit(add, 1)
    assert proxy.hits == 1
    assert hand.entries() == [handle.id]


def test_a_script_that_the_server_forgot_is_sent_again(client: Any, hand: Hand) -> None:
    first = client.submit(add, 1)
    hand.command("SCRIPT", "FLUSH")
    second = client.submit(add, 2)
    hand.command("SCRIPT", "FLUSH")
    third = client.submit_many(add, [(3,), (4,)])
    assert hand.entries() == [first.id, second.id, *(handle.id for handle in third)]
