"""Which faults happen when: drawn from a seed alone, so that a run can be repeated."""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

MACHINES = 2
VISIBILITY_S = 2.0

_FIRST_S = 2.0
_QUIET_S = 2.0
"""Before the end, so that a short run ends in work and not in repair."""
_GAPS_S = (0.5, 3.0)


class Kind(StrEnum):
    """What can happen; each is named as the report says it."""

    KILL_PROCESS = "worker process killed"
    KILL_SUPERVISOR = "supervisor killed"
    KILL_MACHINE = "machine killed"
    KILL_SCHEDULER = "scheduler killed"
    FREEZE_PROCESS = "worker process frozen"
    FREEZE_MACHINE = "machine frozen"
    DEPLOY = "machine stopped in order"
    RESTART_REDIS = "Redis killed and restarted"
    CUT_MACHINE = "machine cut off"
    CUT_CLIENTS = "clients cut off"
    LOSE_REPLIES = "replies lost"
    FLUSH_SCRIPTS = "scripts flushed"


LASTS_S: dict[Kind, tuple[float, float]] = {
    Kind.KILL_PROCESS: (0, 0),
    Kind.KILL_SUPERVISOR: (0.2, 2),
    Kind.KILL_MACHINE: (0.2, 4),
    Kind.KILL_SCHEDULER: (0.2, 2),
    Kind.FREEZE_PROCESS: (0.2, 3 * VISIBILITY_S),
    Kind.FREEZE_MACHINE: (0.2, 3 * VISIBILITY_S),
    Kind.DEPLOY: (0.2, 2),
    Kind.RESTART_REDIS: (0.1, 1.5 * VISIBILITY_S),
    Kind.CUT_MACHINE: (0.1, 1.5 * VISIBILITY_S),
    Kind.CUT_CLIENTS: (0.1, 2),
    Kind.LOSE_REPLIES: (0, 0),
    Kind.FLUSH_SCRIPTS: (0, 0),
}
"""Shortest and longest; a process that was killed is back after that."""


class Planned(NamedTuple):
    """A fault to come.

    Attributes:
        kind: what happens.
        at_s: when it begins, from the start of the run.
        lasts_s: for how long.
        machine: which machine it hits, where it hits one.
    """

    kind: Kind
    at_s: float
    lasts_s: float
    machine: int


def make_plan(seed: int, duration_s: float) -> list[Planned]:
    """Draw the faults of a run; each kind comes once before any comes again.

    Args:
        seed: decides everything.
        duration_s: of the run.
    """
    chance = random.Random(seed)
    plan: list[Planned] = []
    kinds: list[Kind] = []
    at_s = _FIRST_S
    while at_s < duration_s - _QUIET_S:
        if not kinds:
            kinds = list(Kind)
            chance.shuffle(kinds)
        kind = kinds.pop()
        lasts_s = chance.uniform(*LASTS_S[kind])
        plan.append(Planned(kind, at_s, lasts_s, chance.randrange(MACHINES)))
        at_s += chance.uniform(*_GAPS_S)
    return plan
