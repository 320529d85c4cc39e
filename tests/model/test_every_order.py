"""Every order of steps of a few processes, on the real scripts: nothing is lost, and all ends.

The steps are those of a client (submit, submit again, cancel), two workers (claim, reclaim, adopt,
finish in every way, the same finish again, renew, release), a supervisor or sweeper (abandon), a
scheduler (promote, expire), time, and mishaps (a worker dies, falls silent and comes back, or never
sees a reply; a second entry of a task appears), an operator (requeue, purge). Each scenario is
walked until no new state is found. ``DTQ_MODEL_MORE_FAULTS=1`` walks them with so many more
mishaps: hundreds of thousands of states, in minutes.

What the model leaves out: requests of several tasks in one call, and several bands (see
``tests/scripts``); how long anything takes, since an entry may become old at any moment;
heartbeats, wake-up tokens, events and announcements, which decide nothing; more than one partition;
and a server that fails over to older data, but for the second entry of a task that this may bring.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from dtq_core.states import Status
from model.explorer import Explorer, Walked
from model.invariants import LEGAL
from model.pipe import Pipe
from model.world import Scenario, World

MORE_FAULTS = int(os.environ.get("DTQ_MODEL_MORE_FAULTS", "0"))
MAX_STATES = 20_000 if MORE_FAULTS == 0 else 2_000_000
LIMIT_S = 120 if MORE_FAULTS == 0 else 7_200

SCENARIOS = {
    "one task": Scenario(),
    "one task, delayed, with a TTL": Scenario(delay=1, ttl=2, faults=1),
    "one attempt, no dead letter": Scenario(max_attempts=1, dead_letter=False),
    "suspects are left to a process of their own": Scenario(isolation=True, faults=1),
    "what failed is requeued": Scenario(max_attempts=1, releases=0, requeues=1, faults=1),
    "what failed without a letter is requeued": Scenario(
        max_attempts=1, dead_letter=False, releases=0, cancels=0, requeues=1, faults=1
    ),
    "a queue is purged": Scenario(delay=1, releases=0, cancels=0, purges=1, faults=1),
    "two tasks under one key": Scenario(tasks=2, faults=1),
    "two tasks": Scenario(tasks=2, same_key=False, faults=0, releases=0),
    "two tasks of one attempt": Scenario(
        tasks=2, same_key=False, max_attempts=1, releases=0, cancels=0, faults=1
    ),
}


# Of an entry that was delivered while its task was not started: only older data brings that.
# Recurring schedules are tried in ``tests/scheduler``; what they submit is a task like any other.
NOT_MADE = {
    move for move in LEGAL if (move[0], move[2]) == (Status.QUEUED, "adopt") or move[2] == "fire"
}

Walks = Callable[[str], Walked]


@pytest.fixture(scope="module")
def walks(pipe: Pipe) -> Walks:
    """Walks a scenario, each only once."""

    @cache
    def walk(name: str) -> Walked:
        scenario = SCENARIOS[name]
        scenario = replace(scenario, faults=scenario.faults + MORE_FAULTS)
        walked = Explorer(pipe, World(scenario), MAX_STATES).walk()
        print(f"{name}: {walked.states} states, {walked.steps} steps, {walked.depth} deep")
        return walked

    return walk


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_the_order_no_task_is_lost_and_all_can_end(name: str, walks: Walks) -> None:
    walked = walks(name)
    assert walked.violation is None, "\n" + walked.violation
    assert walked.complete, f"there are more than {MAX_STATES} states"


@pytest.mark.timeout(LIMIT_S)
def test_every_legal_move_was_made(walks: Walks) -> None:
    made = {move for name in SCENARIOS for move in walks(name).moves}
    assert made == LEGAL - NOT_MADE
