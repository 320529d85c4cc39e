"""Each script, on a task in each status: it makes a legal move, or none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_core.record import Claim
from dtq_core.states import TERMINAL, TRANSITIONS, Status
from scripts.states import MAKERS
from scripts.table import LONG_MS, PAYLOAD, Table

_NOBODY = ("0" * 32, "q", "normal", "0-1", 1, 3, 1, b"", PAYLOAD, 0, 0, 0, 0, 0)


def _held(claim: Claim | None, task_id: str) -> Claim:
    """The claim that is or was held; where there was none, one that nobody ever gave out."""
    return claim or Claim(*_NOBODY)._replace(task_id=task_id)


ACTIONS: dict[str, Callable[[Table, str, Claim], object]] = {
    "submit": lambda table, task_id, _: table.submit_all(table.submission(task_id=task_id)),
    "promote": lambda table, *_: (table.promote("retry"), table.promote("delay")),
    "claim": lambda table, *_: table.take("w9"),
    "reclaim": lambda table, *_: table.reclaim("w9", idle_ms=0),
    "adopt": lambda table, *_: table.adopt("w1"),
    "finish": lambda table, _, claim: table.succeed(claim),
    "release": lambda table, _, claim: table.release(claim),
    "cancel": lambda table, task_id, _: table.cancel(task_id),
    "expire": lambda table, *_: table.expire(),
    "renew": lambda table, _, claim: table.renew(claim),
    "abandon": lambda table, *_: table.abandon("w1"),
    "watch": lambda table, task_id, _: table.store.run(table.calls.watch([task_id])),
}


@pytest.mark.parametrize("status", MAKERS)
@pytest.mark.parametrize("script", ACTIONS)
def test_a_script_makes_a_legal_move_or_none(script: str, status: Status, table: Table) -> None:
    task_id, claim = MAKERS[status](table)
    assert table.status(task_id) is status
    ACTIONS[script](table, task_id, _held(claim, task_id))
    now = table.status(task_id)
    legal = {move.target for move in TRANSITIONS if (move.source, move.script) == (status, script)}
    assert now is status or now in legal


@pytest.mark.parametrize("status", sorted(TERMINAL))
@pytest.mark.parametrize("script", ACTIONS)
def test_nothing_changes_a_task_that_has_ended(script: str, status: Status, table: Table) -> None:
    task_id, claim = MAKERS[status](table)
    before = table.record(task_id)
    ACTIONS[script](table, task_id, _held(claim, task_id))
    assert table.record(task_id) == before


def _cancel_then(act: Callable[[Table, Claim], object]) -> Callable[[Table, Claim], object]:
    def run(table: Table, claim: Claim) -> object:
        table.cancel(claim.task_id)
        return act(table, claim)

    return run


RUNNING_ENDS: list[tuple[str, Status, dict[str, object], Callable[[Table, Claim], object]]] = [
    ("finish", Status.SUCCEEDED, {}, lambda table, claim: table.succeed(claim)),
    ("finish", Status.RETRYING, {}, lambda table, claim: table.retry(claim, LONG_MS)),
    ("finish", Status.DEAD_LETTERED, {}, lambda table, claim: table.fail(claim)),
    ("finish", Status.FAILED, {"dead_letter": False}, lambda table, claim: table.fail(claim)),
    ("finish", Status.CANCELLED, {}, _cancel_then(lambda table, claim: table.retry(claim))),
    ("release", Status.QUEUED, {}, lambda table, claim: table.release(claim)),
    ("release", Status.SCHEDULED, {}, lambda table, claim: table.release(claim, LONG_MS)),
    ("release", Status.CANCELLED, {}, _cancel_then(lambda table, claim: table.release(claim))),
    ("reclaim", Status.RUNNING, {}, lambda table, _: table.reclaim(idle_ms=0)),
    (
        "reclaim",
        Status.DEAD_LETTERED,
        {"max_attempts": 1},
        lambda table, _: table.reclaim(idle_ms=0),
    ),
    (
        "reclaim",
        Status.FAILED,
        {"max_attempts": 1, "dead_letter": False},
        lambda table, _: table.reclaim(idle_ms=0),
    ),
    ("reclaim", Status.CANCELLED, {}, _cancel_then(lambda table, _: table.reclaim(idle_ms=0))),
    ("adopt", Status.RUNNING, {}, lambda table, _: table.adopt("w1")),
]


@pytest.mark.parametrize(("script", "target", "options", "act"), RUNNING_ENDS)
def test_a_running_task_goes_where_the_table_says(
    script: str,
    target: Status,
    options: dict[str, object],
    act: Callable[[Table, Claim], object],
    table: Table,
) -> None:
    task_id = table.submit(**options)
    act(table, table.claim())
    assert table.status(task_id) is target


def test_every_move_from_running_is_tried_here() -> None:
    tried = {(script, target) for script, target, _, _ in RUNNING_ENDS}
    assert tried == {
        (move.script, move.target) for move in TRANSITIONS if move.source is Status.RUNNING
    }


@pytest.mark.parametrize("source", [Status.SCHEDULED, Status.QUEUED, Status.RETRYING])
@pytest.mark.parametrize(("script", "target"), [("cancel", "CANCELLED"), ("expire", "EXPIRED")])
def test_a_waiting_task_can_be_ended(
    script: str, target: str, source: Status, table: Table
) -> None:
    task_id, _ = MAKERS[source](table)
    if script == "expire":  # as if its TTL had just ended
        table.redis("HSET", table.keys.task(task_id), "expires_ms", 1)
        table.redis("ZADD", table.keys.expiry, 1, task_id)
    ACTIONS[script](table, task_id, _held(None, task_id))
    assert table.status(task_id) == target
    for schedule in (table.keys.delay_schedule, table.keys.retry_schedule, table.keys.expiry):
        assert table.redis("ZSCORE", schedule, task_id) is None
    assert table.length() == 0


@pytest.mark.parametrize("script", ["claim", "adopt", "reclaim"])
@pytest.mark.parametrize("late", [False, True])
def test_a_queued_task_is_started_or_expires(script: str, late: bool, table: Table) -> None:
    task_id = table.submit()
    if script != "claim":  # delivered to w1, and never started: as an older state may bring back
        table.redis("XGROUP", "CREATE", table.stream(), "workers", 0)
        read = ("XREADGROUP", "GROUP", "workers", "w1", "STREAMS", table.stream(), ">")
        assert table.redis(*read)
    if late:
        table.redis("HSET", table.keys.task(task_id), "expires_ms", 1)
    ACTIONS[script](table, task_id, _held(None, task_id))
    assert table.status(task_id) is (Status.EXPIRED if late else Status.RUNNING)
    assert table.pending() == (0 if late else 1)


@pytest.mark.parametrize("source", [Status.SCHEDULED, Status.RETRYING])
@pytest.mark.parametrize("late", [False, True])
def test_a_due_task_is_queued_or_expires(source: Status, late: bool, table: Table) -> None:
    task_id, _ = MAKERS[source](table)
    schedule = "delay" if source is Status.SCHEDULED else "retry"
    key = getattr(table.keys, f"{schedule}_schedule")
    table.redis("ZADD", key, 1, task_id)
    if late:
        table.redis("HSET", table.keys.task(task_id), "expires_ms", 1)
    table.promote(schedule)
    assert table.status(task_id) is (Status.EXPIRED if late else Status.QUEUED)
    assert table.redis("ZCARD", key) == 0
    attempt = 2 if source is Status.RETRYING and not late else 1
    assert table.record(task_id)["attempt"] == str(attempt)
