"""Waiting for results: one connection, and no end is missed, whatever gets lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from client.tasks import add
from dtq_core.embedded import TemporaryServer
from dtq_core.errors import DtqError, TaskCancelledError, TaskNotFoundError
from dtq_core.settings import Settings
from support.eventually import eventually
from support.hand import Hand

WAITERS = 200
FEW = 45
"""More than a client opens for calls, whatever it does; far fewer than waiters."""
LIMIT_S = 20


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was lost is noticed sooner than by default."""
    monkeypatch.setattr("dtq_client.waiting._LOOK_AGAIN_S", 0.2)
    monkeypatch.setattr("dtq_client.waiting._RECONNECT_S", 0.1)


def watched(hand: Hand, *handles: Any) -> Callable[[], bool]:
    """Tell whether the ends of tasks will be announced: whoever waits for them is waiting now."""
    return lambda: all(hand.field(handle.id, "watched") for handle in handles)


def start_waiting(pool: ThreadPoolExecutor, hand: Hand, *handles: Any) -> list[Future[Any]]:
    waiting = [pool.submit(handle.result, timeout=LIMIT_S) for handle in handles]
    eventually("the waiters", watched(hand, *handles))
    return waiting


@pytest.mark.parametrize("settings", [1, 3], indirect=True)
def test_any_number_of_waiters_share_one_connection(client: Any, hand: Hand) -> None:
    handles = client.submit_many(add, [(number,) for number in range(WAITERS)])
    numbers = {handle.id: number for number, handle in enumerate(handles)}
    before, listening = hand.connections(), hand.subscribers()
    with ThreadPoolExecutor(WAITERS) as pool:
        waiting = start_waiting(pool, hand, *handles)
        assert hand.subscribers() == listening + 1
        assert hand.connections() - before < FEW
        for claim in hand.claim(WAITERS):
            hand.succeed(claim, numbers[claim.task_id])
        assert [each.result(LIMIT_S) for each in waiting] == list(range(WAITERS))
    assert hand.connections() - before < FEW


def test_many_may_wait_for_the_same_task(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(20) as pool:
        waiting = start_waiting(pool, hand, *[handle] * 20)
        hand.run_all(1, 1)
        assert [each.result(LIMIT_S) for each in waiting] == [1] * 20


def test_a_waiter_learns_that_its_task_was_cancelled(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(1) as pool:
        (waiting,) = start_waiting(pool, hand, handle)
        handle.cancel("not needed")
        with pytest.raises(TaskCancelledError, match="not needed"):
            waiting.result(LIMIT_S)


def test_a_waiter_learns_that_its_task_is_gone(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(1) as pool:
        (waiting,) = start_waiting(pool, hand, handle)
        hand.command("DEL", hand.store.keys_of(handle.id).task(handle.id))
        with pytest.raises(TaskNotFoundError):
            waiting.result(LIMIT_S)


def test_the_end_is_noticed_when_its_announcement_is_lost(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(1) as pool:
        (waiting,) = start_waiting(pool, hand, handle)
        hand.command("HDEL", hand.store.keys_of(handle.id).task(handle.id), "watched")
        hand.run_all(1, 1)
        assert waiting.result(LIMIT_S) == 1


def test_it_is_noticed_among_many_others_that_arrive(client: Any, hand: Hand) -> None:
    lost = client.submit(add, 1)
    with ThreadPoolExecutor(2) as pool:
        (waiting,) = start_waiting(pool, hand, lost)
        hand.command("HDEL", hand.store.keys_of(lost.id).task(lost.id), "watched")
        hand.run_all(1, 1)
        end = time.monotonic() + LIMIT_S
        while not waiting.done() and time.monotonic() < end:
            other = client.submit(add, 2)
            (its_waiting,) = start_waiting(pool, hand, other)
            hand.run_all(1, 2)
            assert its_waiting.result(LIMIT_S) == 2
        assert waiting.done(), "it is not looked at while announcements keep coming"
        assert waiting.result() == 1


def test_a_waiter_survives_the_loss_of_its_connections(client: Any, hand: Hand) -> None:
    handles = client.submit_many(add, [(number,) for number in range(3)])
    with ThreadPoolExecutor(3) as pool:
        waiting = start_waiting(pool, hand, *handles)
        for kind in ("pubsub", "normal"):
            hand.command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
        hand.run_all(3, "ended")
        assert [each.result(LIMIT_S) for each in waiting] == ["ended"] * 3


def test_a_waiter_survives_a_restart_of_the_server(
    make_client: Any,
    make_hand: Callable[[Settings], Hand],
    own_server: TemporaryServer,
    own_settings: Settings,
) -> None:
    client, hand = make_client(own_server.url), make_hand(own_settings)
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(1) as pool:
        (waiting,) = start_waiting(pool, hand, handle)
        own_server.restart()
        hand.run_all(1, 1)
        assert waiting.result(LIMIT_S) == 1


def test_whoever_waits_when_the_client_is_closed_is_told(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(1) as pool:
        (waiting,) = start_waiting(pool, hand, handle)
        client.close()
        with pytest.raises(DtqError, match="closed"):
            waiting.result(LIMIT_S)


def test_waiting_leaves_no_trace_in_the_client(client: Any, hand: Hand) -> None:
    handles = client.submit_many(add, [(number,) for number in range(5)])
    with ThreadPoolExecutor(5) as pool:
        waiting = start_waiting(pool, hand, *handles)
        hand.run_all(5)
        for each in waiting:
            each.result(LIMIT_S)
    eventually(
        "the channels to be left",
        lambda: not hand.command("PUBSUB", "CHANNELS", f"{hand.store.partitions.prefix}*"),
    )
