"""A task that was in processes when they died is left for a process that runs nothing else."""

from __future__ import annotations

import pytest

from dtq_core.calls import Suspects, Taken
from dtq_core.record import Claim
from dtq_core.states import Status
from scripts.table import Table


def crash(table: Table, worker: str, suspects: Suspects = Suspects.LEAVE) -> Taken:
    """A worker dies; another one reclaims."""
    table.abandon(worker)
    return table.reclaim("next", suspects=suspects)


def isolated(table: Table, worker: str = "alone", slots: int = 1) -> Claim | None:
    taken = table.reclaim(worker, slots, suspects=Suspects.ONLY)
    return taken.claims[0] if taken.claims else None


def test_the_first_crash_makes_no_suspect(table: Table) -> None:
    table.submit(max_attempts=3)
    table.claim("w1")
    taken = crash(table, "w1")
    assert [claim.attempt for claim in taken.claims] == [2]
    assert not taken.suspects


def test_the_second_crash_does(table: Table) -> None:
    task_id = table.submit(max_attempts=9)
    table.claim("w1")
    crash(table, "w1")
    taken = crash(table, "next")
    assert (taken.claims, taken.suspects) == ([], True)
    claim = isolated(table)
    assert claim is not None
    assert (claim.task_id, claim.attempt, claim.crashes) == (task_id, 3, 2)


def test_so_does_the_first_where_one_attempt_is_left(table: Table) -> None:
    table.submit(max_attempts=2)
    table.claim("w1")
    taken = crash(table, "w1")
    assert (taken.claims, taken.suspects) == ([], True)
    claim = isolated(table)
    assert claim is not None
    assert claim.attempt == 2


def test_waiting_for_a_process_of_its_own_costs_no_attempt(table: Table) -> None:
    task_id = table.submit(max_attempts=2)
    table.claim("w1")
    crash(table, "w1")
    for _ in range(5):  # its entry grows old, and is set aside again
        assert table.reclaim(idle_ms=0, suspects=Suspects.LEAVE).claims == []
    assert (table.record(task_id)["attempt"], table.attempts(task_id)) == ("1", [])
    assert table.status(task_id) is Status.RUNNING


def test_an_isolating_worker_takes_no_more_than_its_slots_and_nothing_but_suspects(
    table: Table,
) -> None:
    suspects = {table.submit(max_attempts=2) for _ in range(3)}
    table.take("w1")
    crash(table, "w1")
    table.submit()
    taken = table.reclaim("alone", 1, suspects=Suspects.ONLY)
    assert (len(taken.claims), taken.suspects) == (1, True)
    rest = table.reclaim("alone", 5, suspects=Suspects.ONLY)
    assert {claim.task_id for claim in [*taken.claims, *rest.claims]} == suspects
    assert not rest.suspects


def test_a_task_that_ends_its_own_process_is_dead_lettered_with_that_reason(table: Table) -> None:
    task_id = table.submit(max_attempts=2)
    table.claim("w1")
    crash(table, "w1")
    assert isolated(table) is not None
    assert crash(table, "alone").claims == []
    assert table.status(task_id) is Status.DEAD_LETTERED
    assert table.record(task_id)["error"] == (
        "worker lost on attempt 2 of 2, when the task ran alone in its process: the task ends it"
    )


def test_one_that_died_in_company_is_not_accused(table: Table) -> None:
    task_id = table.submit(max_attempts=1)
    table.claim("w1")
    crash(table, "w1")
    assert table.record(task_id)["error"] == "worker lost on attempt 1 of 1"


def test_a_suspect_that_is_given_back_stays_one(table: Table) -> None:
    task_id = table.submit(max_attempts=2)
    table.claim("w1")
    crash(table, "w1")
    claim = isolated(table)
    assert claim is not None
    table.release(claim)
    taken = table.reclaim(suspects=Suspects.LEAVE)
    assert (taken.claims, taken.suspects) == ([], True)
    again = isolated(table)
    assert again is not None
    assert (again.task_id, again.attempt) == (task_id, 2)


def test_a_suspect_is_cancelled_without_being_run(table: Table) -> None:
    task_id = table.submit(max_attempts=2)
    table.claim("w1")
    crash(table, "w1")
    table.cancel(task_id)
    table.reclaim(idle_ms=0, suspects=Suspects.LEAVE)
    assert table.status(task_id) is Status.CANCELLED
    assert table.pending() == 0


@pytest.mark.parametrize("innocent", range(12))
def test_more_suspects_than_free_slots_hide_nothing_behind_them(
    table: Table, innocent: int
) -> None:
    ids = [table.submit(max_attempts=2 if n != innocent else 3) for n in range(12)]
    table.take("w1", 12)
    table.abandon("w1")
    taken = table.reclaim("next", slots=2, suspects=Suspects.LEAVE)
    assert [claim.task_id for claim in taken.claims] == [ids[innocent]]


def test_without_isolating_workers_suspects_run_among_the_others(table: Table) -> None:
    table.submit(max_attempts=2)
    table.claim("w1")
    taken = crash(table, "w1", Suspects.TAKE)
    assert [claim.attempt for claim in taken.claims] == [2]


def test_a_suspect_that_nobody_isolates_runs_among_the_others_in_time(table: Table) -> None:
    table.submit(max_attempts=2)
    table.claim("w1")
    crash(table, "w1")
    assert table.reclaim(suspects=Suspects.TAKE).claims == []
    assert len(table.reclaim(idle_ms=0, suspects=Suspects.TAKE).claims) == 1
