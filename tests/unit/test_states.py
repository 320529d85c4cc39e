"""The one table of legal moves."""

from __future__ import annotations

from dtq_core.states import TERMINAL, TRANSITIONS, Status


def test_only_a_requeue_leads_out_of_a_terminal_status() -> None:
    moves = {(move.source, move.script) for move in TRANSITIONS if move.source in TERMINAL}
    assert moves == {(Status.DEAD_LETTERED, "requeue"), (Status.FAILED, "requeue")}


def test_every_status_can_be_reached() -> None:
    assert {move.target for move in TRANSITIONS} == set(Status)


def test_every_status_that_is_not_terminal_can_be_left_for_a_terminal_one() -> None:
    for status in set(Status) - TERMINAL:
        assert status.terminal is False
        assert {move.target for move in TRANSITIONS if move.source is status} & TERMINAL


def test_a_task_comes_into_being_by_submit_or_by_its_schedule() -> None:
    assert {move.script for move in TRANSITIONS if move.source is None} == {"submit", "fire"}


def test_no_move_is_listed_twice() -> None:
    assert len(set(TRANSITIONS)) == len(TRANSITIONS)
