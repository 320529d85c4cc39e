"""The state machine of a task: its statuses, and every legal move with the script that makes it.

``TRANSITIONS`` is the one table; ``docs/task-lifecycle.md`` is checked against it, and
``tests/scripts`` tries every script from every status.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """Where a task stands."""

    SCHEDULED = "SCHEDULED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DEAD_LETTERED = "DEAD_LETTERED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"

    @property
    def terminal(self) -> bool:
        """Whether a task in this status has ended."""
        return self in TERMINAL


TERMINAL = frozenset(
    {Status.SUCCEEDED, Status.FAILED, Status.DEAD_LETTERED, Status.CANCELLED, Status.EXPIRED}
)

WAITING = (Status.SCHEDULED, Status.QUEUED, Status.RETRYING)
"""Before a worker has the task."""


class Actor(StrEnum):
    """Who makes a move."""

    CLIENT = "client"
    WORKER = "worker"
    REAPER = "reaper"
    SCHEDULER = "scheduler"
    OPERATOR = "operator"


class Transition(NamedTuple):
    """One legal move; ``source`` is None where the task comes into being."""

    source: Status | None
    target: Status
    script: str
    actor: Actor


def _moves(
    script: str, actor: Actor, sources: tuple[Status | None, ...], targets: tuple[Status, ...]
) -> list[Transition]:
    return [Transition(source, target, script, actor) for source in sources for target in targets]


TRANSITIONS: tuple[Transition, ...] = (
    *_moves("submit", Actor.CLIENT, (None,), (Status.QUEUED, Status.SCHEDULED)),
    *_moves("fire", Actor.SCHEDULER, (None,), (Status.QUEUED,)),
    *_moves(
        "promote",
        Actor.SCHEDULER,
        (Status.SCHEDULED, Status.RETRYING),
        (Status.QUEUED, Status.EXPIRED),
    ),
    *_moves("claim", Actor.WORKER, (Status.QUEUED,), (Status.RUNNING, Status.EXPIRED)),
    *_moves("adopt", Actor.WORKER, (Status.QUEUED,), (Status.RUNNING, Status.EXPIRED)),
    *_moves("adopt", Actor.WORKER, (Status.RUNNING,), (Status.RUNNING,)),
    *_moves("reclaim", Actor.REAPER, (Status.QUEUED,), (Status.RUNNING, Status.EXPIRED)),
    *_moves(
        "reclaim",
        Actor.REAPER,
        (Status.RUNNING,),
        (Status.RUNNING, Status.DEAD_LETTERED, Status.FAILED, Status.CANCELLED),
    ),
    *_moves(
        "finish",
        Actor.WORKER,
        (Status.RUNNING,),
        (
            Status.SUCCEEDED,
            Status.RETRYING,
            Status.DEAD_LETTERED,
            Status.FAILED,
            Status.CANCELLED,
        ),
    ),
    *_moves(
        "release",
        Actor.WORKER,
        (Status.RUNNING,),
        (Status.QUEUED, Status.SCHEDULED, Status.CANCELLED),
    ),
    *_moves("cancel", Actor.CLIENT, WAITING, (Status.CANCELLED,)),
    *_moves("expire", Actor.SCHEDULER, WAITING, (Status.EXPIRED,)),
    *_moves("requeue", Actor.OPERATOR, (Status.DEAD_LETTERED, Status.FAILED), (Status.QUEUED,)),
    *_moves("purge", Actor.OPERATOR, WAITING, (Status.CANCELLED,)),
)
