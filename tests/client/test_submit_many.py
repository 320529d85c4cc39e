"""Submitting many tasks: in order, in few round trips, all checked before any is sent."""

from __future__ import annotations

from typing import Any

import pytest

from client.tasks import add, anything
from dtq_core.errors import InputError, InvalidArgumentsError, InvalidOptionError
from support.hand import Hand


def script_calls(hand: Hand) -> int:
    """Return how many script calls the server has ever carried out."""
    stats = hand.command("INFO", "commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("eval", "evalsha"))


def test_1200_tasks_are_accepted_in_order_in_three_script_calls(client: Any, hand: Hand) -> None:
    client.submit(add, 0)  # the script is loaded, the layout checked
    hand.run_all(1)
    before = script_calls(hand)
    handles = client.submit_many(add, [(number,) for number in range(1_200)])
    assert script_calls(hand) - before == 3
    assert hand.entries() == [handle.id for handle in handles]
    claims = hand.claim(1_200)
    assert [claim.task_id for claim in claims] == [handle.id for handle in handles]
    assert [add.decode(claim.payload)[0] for claim in claims] == [(n,) for n in range(1_200)]


@pytest.mark.parametrize("settings", [3], indirect=True)
def test_each_partition_gets_its_own_calls(client: Any, hand: Hand) -> None:
    handles = client.submit_many(add, [(number,) for number in range(90)])
    values = {h.id: number for number, h in enumerate(handles)}
    claims = hand.claim(90)
    assert {claim.task_id: add.decode(claim.payload)[0][0] for claim in claims} == values


def test_arguments_are_given_by_position_or_by_name(client: Any, hand: Hand) -> None:
    client.submit_many(add.options(queue="sums"), iter([(1, 2), [3], {"left": 4, "right": 5}]))
    payloads = [add.decode(claim.payload) for claim in hand.claim(3, queue="sums")]
    assert payloads == [((1, 2), {}), ((3,), {}), ((4, 5), {})]


def test_no_calls_at_all_send_nothing(client: Any) -> None:
    assert client.submit_many(add, []) == []


@pytest.mark.parametrize("bad", [("two",), (float("nan"),), "text", 7, {"middle": 1}, ()])
def test_one_bad_call_among_many_writes_nothing(client: Any, hand: Hand, bad: Any) -> None:
    calls = [(number,) for number in range(900)]
    calls.insert(700, bad)
    with pytest.raises(InvalidArgumentsError, match="call 700") as caught:
        client.submit_many(add, calls)
    assert "\n" not in str(caught.value)
    assert hand.keys() == set()


def test_a_payload_too_large_among_many_writes_nothing(make_client: Any, hand: Hand) -> None:
    client = make_client(max_payload_bytes=1_000)
    with pytest.raises(InputError, match="call 2: the payload of anything is 1,009 bytes"):
        client.submit_many(anything, [("a",), ("b",), ("c" * 1_000,)])
    assert hand.keys() == set()


def test_calls_that_end_with_an_error_of_their_own_write_nothing(client: Any, hand: Hand) -> None:
    def calls() -> Any:
        yield (1,)
        raise LookupError("the caller's own")

    with pytest.raises(LookupError):
        client.submit_many(add, calls())
    assert hand.keys() == set()


def test_one_idempotency_key_cannot_serve_many(client: Any, hand: Hand) -> None:
    with pytest.raises(InvalidOptionError, match="one idempotency key"):
        client.submit_many(add.options(idempotency_key="k"), [(1,), (2,)])
    assert hand.keys() == set()
