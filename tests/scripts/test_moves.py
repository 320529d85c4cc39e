"""Each legal move: it changes exactly its keys, once, whatever the server does meanwhile."""

from __future__ import annotations

import pytest

from dtq_core.calls import Ended, Promoted, Submitted
from dtq_core.errors import RedisFullError
from dtq_core.scripts import Code
from scripts.moves import MOVES, Move
from scripts.table import Table

pytestmark = pytest.mark.ledger_checked

AGAIN = {
    "submit": Code.AGAIN,
    "cancel": Code.AGAIN,
    "finish": Code.AGAIN,
    "release": Code.LOST,
    "requeue": Code.AGAIN,
    "purge": Code.ENDED,
    "fire": Code.AGAIN,
}
"""What a script answers that is sent again because its reply was lost."""

NOT_REPEATED = {"claim", "reclaim", "adopt"}
"""Their lost replies are made good by adopt."""

REPEATED = [move for move in MOVES if move.script not in NOT_REPEATED]

each_move = pytest.mark.parametrize("move", MOVES, ids=str)


@each_move
def test_a_move_changes_exactly_its_keys(move: Move, timed: Table) -> None:
    task_id, claim = move.begin(timed)
    assert timed.status(task_id) is move.source
    before = timed.snapshot()
    answer = move.act(timed, task_id, claim)
    assert timed.status(task_id) is move.target
    assert timed.changed(before, task_id) == set(move.changed.split())
    if isinstance(answer, Ended | Submitted):
        assert (answer.code, answer.status) == (Code.OK, move.target)


@pytest.mark.parametrize("move", REPEATED, ids=str)
def test_the_same_call_again_writes_nothing(move: Move, timed: Table) -> None:
    task_id, claim = move.begin(timed)
    move.act(timed, task_id, claim)
    before = timed.snapshot()
    again = move.act(timed, task_id, claim)
    assert timed.snapshot() == before
    if isinstance(again, Promoted):
        assert (again.moved, again.seen) == (0, 0)
    elif isinstance(again, list):
        assert again == [AGAIN[move.script]]
    else:
        assert (again.code, again.status) == (AGAIN[move.script], move.target)


@each_move
def test_a_server_that_has_forgotten_its_scripts_learns_them_again(
    move: Move, timed: Table
) -> None:
    task_id, claim = move.begin(timed)
    timed.redis("SCRIPT", "FLUSH")
    move.act(timed, task_id, claim)
    assert timed.status(task_id) is move.target


@each_move
def test_a_full_server_takes_a_move_whole_or_not_at_all(move: Move, timed: Table) -> None:
    task_id, claim = move.begin(timed)
    before = timed.snapshot()
    timed.redis("CONFIG", "SET", "maxmemory", 1)
    try:
        move.act(timed, task_id, claim)
    except RedisFullError:
        assert timed.snapshot() == before
    else:
        assert timed.status(task_id) is move.target
        assert timed.changed(before, task_id) == set(move.changed.split())
    finally:
        timed.redis("CONFIG", "SET", "maxmemory", 0)
