"""What requests and answers look like; tasks, queues and the rest as in Python and the CLI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from dtq_client.operating.letters import Filter
from dtq_client.operating.schedules import ScheduleInfo
from dtq_client.queries.audit import Act, Verdict
from dtq_client.requests import CancelAnswer
from dtq_core.audit import MAX_REASON_CHARS
from dtq_core.cron import MAX_EXPRESSION_CHARS, Misfire, Overlap
from dtq_core.limits import NAME_PATTERN, Band
from dtq_core.reads import Event, Letter, QueueInfo, WorkerInfo
from dtq_core.record import Attempt, Options, TaskInfo
from dtq_core.states import Status

MAX_BATCH_ITEMS = 1_000
MAX_PAGE = 500
_SHORT_CHARS = 300

Name = Annotated[str, msgspec.Meta(pattern=f"^{NAME_PATTERN}$")]
Reason = Annotated[str, msgspec.Meta(max_length=MAX_REASON_CHARS)]


class TaskRequest(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task to submit: its name, its arguments, and how it is to be run; durations are seconds.

    ``idempotency_key`` is for the items of a batch; a single task has the header for it.
    """

    name: str
    args: list[Any] = msgspec.field(default_factory=list)
    kwargs: dict[str, Any] = msgspec.field(default_factory=dict)


class BatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks to submit together; each is answered by itself."""

    tasks: Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MAX_BATCH_ITEMS)]


class SubmittedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was accepted."""

    id: str
    name: str
    queue: str
    band: str
    status: Status


class TaskOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A task, and what came of it.

    Attributes:
        task: the task.
        result: what its handler returned; null where that is null, or nothing is kept.
        result_kept: whether there is a result.
    """

    task: TaskInfo
    result: Any = None
    result_kept: bool = False


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one item of a batch: what a request of its own would have been answered.

    Attributes:
        status: of that answer.
        task: where it was accepted.
        outcome: where the task of its idempotency key has ended already.
        problem: where it was refused.
    """

    status: int
    task: SubmittedTask | None = None
    outcome: TaskOutcome | None = None
    problem: dict[str, Any] | None = None


class BatchAnswer(msgspec.Struct, frozen=True):
    """What became of a batch, in its order."""

    items: list[BatchItem]


class TaskWithPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its arguments; null where they cannot be read."""

    task: TaskInfo
    args: list[Any] | None
    kwargs: dict[str, Any] | None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks, the newest first, long texts cut.

    Attributes:
        tasks: no more than were asked for.
        next: the ``cursor`` of the next page; null where there is none.
        complete: whether all was looked at that these could be hidden by.
        unseen_before: where not: only older tasks may be missing; null for any.
    """

    tasks: list[TaskInfo]
    next: str | None
    complete: bool
    unseen_before: str | None


class Attempts(msgspec.Struct, frozen=True):
    """The ended attempts of a task, oldest first."""

    attempts: list[Attempt]


class TaskEvents(msgspec.Struct, frozen=True):
    """The events of a task that are still kept, oldest first.

    Attributes:
        events: the events.
        complete: whether none of them was thrown away yet, as the newest of all tasks are kept.
    """

    events: list[Event]
    complete: bool


class ReasonRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why something is done, for the audit log."""

    reason: Reason = ""


class Cancelled(msgspec.Struct, frozen=True):
    """What a cancel found."""

    id: str
    answer: CancelAnswer


class Queues(msgspec.Struct, frozen=True):
    """All queues, by name."""

    queues: list[QueueInfo]


class Changed(msgspec.Struct, frozen=True):
    """Whether something was changed, or was so before."""

    changed: bool


class PurgeRequest(ReasonRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which waiting tasks of a queue are to be cancelled; ``dry_run`` only counts them."""

    band: Band | None = None
    dry_run: bool = False


class Operated(msgspec.Struct, frozen=True):
    """How much was met, and how much of it was changed."""

    matched: int
    changed: int
    dry_run: bool


class LetterRequest(ReasonRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters are meant: by ids, or by filters, or ``all``; ``dry_run`` counts them."""

    ids: Annotated[list[str], msgspec.Meta(max_length=MAX_BATCH_ITEMS)] = msgspec.field(
        default_factory=list
    )
    queue: str | None = None
    name: str | None = None
    error: str | None = None
    older_than: Annotated[float, msgspec.Meta(ge=0)] | None = None
    newer_than: Annotated[float, msgspec.Meta(ge=0)] | None = None
    all: bool = False
    dry_run: bool = False


class LetterPage(msgspec.Struct, frozen=True):
    """Dead letters, oldest first, long texts cut; ``next`` is the cursor of the next page."""

    dead_letters: list[Letter]
    next: str | None


class ScheduleRequest(ReasonRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recurring schedule: when, and what it submits."""

    task: Name
    cron: Annotated[str, msgspec.Meta(max_length=MAX_EXPRESSION_CHARS)]
    tz: str = "UTC"
    args: list[Any] = msgspec.field(default_factory=list)
    kwargs: dict[str, Any] = msgspec.field(default_factory=dict)
    queue: str = "default"
    band: Band = Band.NORMAL
    ttl: float | None = None
    max_attempts: int = 3
    misfire: Misfire = Misfire.ONCE
    overlap: Overlap = Overlap.ALLOW


class Fired(msgspec.Struct, frozen=True):
    """The task that a schedule was fired with."""

    id: str


class Schedules(msgspec.Struct, frozen=True):
    """All recurring schedules, by name."""

    schedules: list[ScheduleInfo]


class Workers(msgspec.Struct, frozen=True):
    """The live workers, by id."""

    workers: list[WorkerInfo]


class AuditPage(msgspec.Struct, frozen=True):
    """The newest operations, oldest first."""

    operations: list[Act]


class AuditVerdicts(msgspec.Struct, frozen=True):
    """Whether the audit log is as it was written, of each partition."""

    partitions: list[Verdict]


class Health(msgspec.Struct, frozen=True):
    """That it is well."""

    status: Literal["ok"] = "ok"


def short_task(info: TaskInfo) -> TaskInfo:
    """A task as lists have it: without its progress, its error cut."""
    return msgspec.structs.replace(info, progress=None, error=_short(info.error))


def short_letter(letter: Letter) -> Letter:
    """A dead letter as lists have it."""
    return msgspec.structs.replace(letter, reason=_short(letter.reason) or "")


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= _SHORT_CHARS:
        return text
    return f"{text[: _SHORT_CHARS - 1]}…"


def filter_of(asked: LetterRequest) -> Filter:
    """Return which dead letters are meant. Errors as of :class:`Filter`."""
    return Filter(
        queue=asked.queue,
        task=asked.name,
        error=asked.error,
        older_than_s=asked.older_than,
        newer_than_s=asked.newer_than,
        ids=tuple(asked.ids),
    )
