"""What may disagree in a deployment: each kind, what it means, and what is done about it.

``lua/verify.lua`` finds them, at one moment for each thing it is asked about, so that nothing is
reported that was only on its way from one place to another.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Mend(StrEnum):
    """What of that which is found may be mended in the same step."""

    NOTHING = "nothing"
    LOST = "lost"
    """Tasks that nothing leads to any more."""
    ALL = "all"
    """Whatever can be mended safely; the audit log is told."""


class Thing(NamedTuple):
    """One thing to look at: what it is, and the words that name it."""

    what: str
    name: str
    more: str = ""


class Finding(NamedTuple):
    """Something that disagrees, and whether it has been mended."""

    kind: Kind
    subject: str
    mended: bool


class Checked(NamedTuple):
    """A sound record that was looked at."""

    task_id: str
    status: str
    queue: str


class Verified(NamedTuple):
    """What one call found, and the sound records among what it looked at."""

    findings: list[Finding]
    tasks: list[Checked]


class Kind(StrEnum):
    """What disagrees."""

    ENTRY_LOST = "entry-lost"
    ENTRY_LOST_RUNNING = "entry-lost-running"
    UNSCHEDULED = "unscheduled"
    EXPIRY_MISSING = "expiry-missing"
    LETTER_MISSING = "letter-missing"
    LETTER_STALE = "letter-stale"
    LETTER_ORPHAN = "letter-orphan"
    ENTRY_STALE = "entry-stale"
    MEMBER_STALE = "member-stale"
    IDEMPOTENCY_STUCK = "idempotency-stuck"
    IDEMPOTENCY_PASSING = "idempotency-passing"
    KEPT = "kept"
    PASSING = "passing"
    ORPHAN = "orphan"
    QUEUE_UNKNOWN = "queue-unknown"
    WORKER_GONE = "worker-gone"
    COUNTER_WRONG = "counter-wrong"
    RECORD_CORRUPT = "record-corrupt"
    QUEUE_BLOCKED = "queue-blocked"
    FOREIGN = "foreign"
    AUDIT_CHANGED = "audit-changed"


class Meaning(NamedTuple):
    """What a kind means, and how it is mended or what is to be done.

    Attributes:
        says: what disagrees.
        remedy: what ``--repair`` does; of what it leaves alone, what an operator can do.
        mended: whether ``--repair`` mends it.
    """

    says: str
    remedy: str
    mended: bool = True


MEANINGS: dict[Kind, Meaning] = {
    Kind.ENTRY_LOST: Meaning(
        "no stream entry leads to a task that is queued, or that runs on a worker that is gone",
        "it gets an entry again; the crash of a running one is counted by the next reclaim",
    ),
    Kind.ENTRY_LOST_RUNNING: Meaning(
        "a task runs on a live worker, and its stream entry is gone",
        "nothing: the worker will end it; should that die, the next check finds the task",
        mended=False,
    ),
    Kind.UNSCHEDULED: Meaning(
        "a delayed task or a retry is in no schedule", "it is scheduled for its due time"
    ),
    Kind.EXPIRY_MISSING: Meaning(
        "a waiting task with a TTL is not among those that expire", "it is added"
    ),
    Kind.LETTER_MISSING: Meaning(
        "a dead-lettered task is not among the dead letters", "it is added"
    ),
    Kind.LETTER_STALE: Meaning(
        "a dead letter belongs to a task that is none any more", "the letter is removed"
    ),
    Kind.LETTER_ORPHAN: Meaning(
        "the record of a dead letter is gone", "nothing: purge it by hand", mended=False
    ),
    Kind.ENTRY_STALE: Meaning(
        "a stream entry belongs to no task that means it", "it is absorbed, as a worker would"
    ),
    Kind.MEMBER_STALE: Meaning(
        "a schedule names a task that does not wait in it", "the name is removed"
    ),
    Kind.IDEMPOTENCY_STUCK: Meaning(
        "an idempotency key is taken for ever, though its task has ended or is gone",
        "it passes after its own time, or after a day",
    ),
    Kind.IDEMPOTENCY_PASSING: Meaning(
        "an idempotency key would pass, or says that its task has ended, though it has not",
        "it stays until its task has ended",
    ),
    Kind.KEPT: Meaning(
        "what is to pass after the end of its task stays for ever", "it passes after its retention"
    ),
    Kind.PASSING: Meaning("a task that has not ended, or a dead letter, would pass", "it stays"),
    Kind.ORPHAN: Meaning(
        "a list of attempts has no task and stays for ever", "it passes after a day"
    ),
    Kind.QUEUE_UNKNOWN: Meaning(
        "a queue has a stream or counters and is not registered", "it is registered"
    ),
    Kind.WORKER_GONE: Meaning(
        "a consumer belongs to a worker that is gone",
        "what it held is made overdue, and the consumer deleted",
    ),
    Kind.COUNTER_WRONG: Meaning(
        "a counter of a queue in which nothing moved is not the number of its tasks",
        "it is set to that, unless something has moved since",
    ),
    Kind.RECORD_CORRUPT: Meaning(
        "a record is not what dtq writes",
        "nothing: look at it with HGETALL, and delete or mend it by hand",
        mended=False,
    ),
    Kind.QUEUE_BLOCKED: Meaning(
        "a key of a queue holds something that is not dtq's; its tasks wait",
        "nothing: rename or delete that key",
        mended=False,
    ),
    Kind.FOREIGN: Meaning(
        "a key under the prefix is not dtq's", "nothing: move it away", mended=False
    ),
    Kind.AUDIT_CHANGED: Meaning(
        "the audit log is not as it was written",
        "nothing: see `dtq audit --check`",
        mended=False,
    ),
}
