"""The writes of an outcome come in the order of the contract, the acknowledgement last."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_core.decide import Finish
from dtq_core.record import Claim
from scripts.monitor import Commands, monitored
from scripts.table import LONG_MS, Table

pytestmark = pytest.mark.ledger_checked


def _named(table: Table, task_id: str, writes: Commands) -> list[str]:
    """Writes as the contract names them; counters and retention are none of its concern."""
    keys = table.keys
    names = {
        ("RPUSH", keys.attempts(task_id)): "attempt",
        ("HSET", keys.task(task_id)): "hash",
        ("SET", keys.result(task_id)): "result",
        ("XADD", keys.events): "event",
        ("XADD", keys.dlq): "dlq",
        ("ZADD", keys.retry_schedule): "schedule",
        ("HSET", keys.idempotency("k")): "idempotency",
        ("XACK", table.stream()): "ack",
        ("XDEL", table.stream()): "delete",
    }
    return [names[write] for write in writes if write in names]


def _stop(table: Table, claim: Claim) -> object:
    return table.finish(Finish.cancelled(claim, "stopped"))


OUTCOMES: dict[str, tuple[Callable[[Table, Claim], object], list[str]]] = {
    "success": (
        lambda table, claim: table.succeed(claim),
        # The hash says how the attempt ended, in one command with the status.
        ["hash", "result", "event", "idempotency", "ack", "delete"],
    ),
    "retry": (
        lambda table, claim: table.retry(claim, LONG_MS),
        ["attempt", "hash", "event", "schedule", "ack", "delete"],
    ),
    "permanent failure": (
        lambda table, claim: table.fail(claim),
        ["attempt", "hash", "dlq", "hash", "event", "idempotency", "ack", "delete"],
    ),
    "cancel": (_stop, ["attempt", "hash", "event", "idempotency", "ack", "delete"]),
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_is_written_in_order_and_acknowledged_last(outcome: str, table: Table) -> None:
    task_id = table.submit(idempotency_key="k")
    claim = table.claim()
    act, order = OUTCOMES[outcome]
    with monitored(table) as heard:
        act(table, claim)
        writes = heard()
    assert _named(table, task_id, writes) == order


def test_a_failure_without_a_dead_letter_is_written_in_order(table: Table) -> None:
    task_id = table.submit(idempotency_key="k", dead_letter=False)
    claim = table.claim()
    with monitored(table) as heard:
        table.fail(claim)
        writes = heard()
    order = ["attempt", "hash", "event", "idempotency", "ack", "delete"]
    assert _named(table, task_id, writes) == order


@pytest.mark.parametrize("end", ["cancel", "expire"])
def test_ending_a_waiting_task_acknowledges_last(end: str, table: Table) -> None:
    task_id = table.submit(idempotency_key="k", ttl=0 if end == "expire" else 600)
    table.redis("XGROUP", "CREATE", table.stream(), "workers", 0)
    with monitored(table) as heard:
        table.cancel(task_id) if end == "cancel" else table.expire()
        writes = heard()
    assert _named(table, task_id, writes) == ["hash", "event", "idempotency", "ack", "delete"]


def test_a_crash_that_ends_a_task_is_written_in_order(table: Table) -> None:
    task_id = table.submit(idempotency_key="k", max_attempts=1)
    table.claim()
    with monitored(table) as heard:
        table.reclaim(idle_ms=0)
        writes = heard()
    order = ["attempt", "hash", "hash", "dlq", "hash", "event", "idempotency", "ack", "delete"]
    assert _named(table, task_id, writes) == order  # the first hash: one crash more


def test_a_promotion_leaves_no_moment_without_entry_or_schedule(table: Table) -> None:
    task_id = table.submit(delay=600)
    table.redis("ZADD", table.keys.delay_schedule, 1, task_id)
    with monitored(table) as heard:
        table.promote("delay")
        commands = heard()
    writes = [
        ("XADD", table.stream()),
        ("HSET", table.keys.task(task_id)),
        ("ZREM", table.keys.delay_schedule),
    ]
    assert [command for command in commands if command in writes] == writes


def test_the_acknowledgement_comes_after_every_write_of_the_batch(table: Table) -> None:
    table.submit_all(*(table.submission() for _ in range(3)))
    finishes = [Finish.succeeded(claim, b"1", LONG_MS) for claim in table.take().claims]
    with monitored(table) as heard:
        table.finish(*finishes)
        commands = [command for command, _ in heard()]
    assert commands[-2:] == ["XACK", "XDEL"]
    assert commands.count("XACK") == 1
