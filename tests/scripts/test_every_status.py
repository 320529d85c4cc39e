"""Each script, on a task in each status: it makes a legal move, or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from dtq_core.record import Claim
from dtq_core.scripts import Code
from dtq_core.states import TERMINAL, TRANSITIONS, Status
from scripts.moves import MOVES
from scripts.states import MAKERS
from scripts.table import PAYLOAD, Table

pytestmark = pytest.mark.ledger_checked

_NOBODY = ("0" * 32, "q", "normal", "0-1", 1, 3, 1, b"", PAYLOAD, 0, 0, 0, 0, 0, 0)


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
    "beat": lambda table, *_: table.beat("w1"),
    "watch": lambda table, task_id, _: table.watch(task_id),
    "op_begin": lambda table, _, claim: table.op_begin(claim),
    "op_end": lambda table, _, claim: table.op_end(claim),
    "pause": lambda table, *_: table.pause(),
    "fire": lambda table, task_id, _: (table.cron_put(), table.fire(task_id)),
    "cron_pause": lambda table, *_: table.run(
        table.calls.cron_pause(table.operation(), "nightly", None)
    ),
    "key_put": lambda table, *_: table.key_put(),
    "probe": lambda table, *_: table.run(table.calls.probe()),
    "requeue": lambda table, task_id, _: table.requeue(task_id),
    "purge": lambda table, task_id, _: table.purge(task_id),
    "verify": lambda table, task_id, _: table.verify(task_id),
    "recount": lambda table, *_: table.recount(),
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
def test_nothing_but_a_requeue_changes_a_task_that_has_ended(
    script: str, status: Status, table: Table
) -> None:
    if script == "requeue" and status in (Status.DEAD_LETTERED, Status.FAILED):
        return
    task_id, claim = MAKERS[status](table)
    before = table.record(task_id)
    ACTIONS[script](table, task_id, _held(claim, task_id))
    assert table.record(task_id) == before


def test_every_move_of_the_table_is_tried() -> None:
    assert Counter((move.source, move.target, move.script) for move in MOVES) == Counter(
        row[:3] for row in TRANSITIONS
    )


CANCEL_ANSWERS = {
    **dict.fromkeys((Status.SCHEDULED, Status.QUEUED, Status.RETRYING), Code.OK),
    **dict.fromkeys(TERMINAL, Code.ENDED),
    Status.RUNNING: Code.REQUESTED,
    Status.CANCELLED: Code.AGAIN,
}


@pytest.mark.parametrize("status", MAKERS)
def test_a_cancel_says_what_it_found(status: Status, table: Table) -> None:
    task_id, _ = MAKERS[status](table)
    found = table.cancel(task_id)[0]
    assert found.code is CANCEL_ANSWERS[status]
    assert found.status == ("CANCELLED" if found.code is Code.OK else status)
