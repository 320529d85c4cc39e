"""Every script call as a value: what is sent, and what its answer means.

Pure, hence one for the blocking and the asynchronous world.

A :class:`~dtq_core.store.Store` runs a call and waits for it, an
:class:`~dtq_core.store.AsyncStore` is awaited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from dtq_core.audit import NO_OPERATION, Operation
from dtq_core.decide import Finish, Release
from dtq_core.durability import Confirmation
from dtq_core.errors import OutcomeUnknownError
from dtq_core.keyspace import Keyspace
from dtq_core.limits import MAX_BATCH_TASKS, MAX_CLAIM_BYTES
from dtq_core.record import Claim, Submission
from dtq_core.scripts import (
    ABANDON,
    ADOPT,
    BEAT,
    CANCEL,
    CLAIM,
    CRON_DROP,
    CRON_PAUSE,
    CRON_PUT,
    DISCARD,
    EXPIRE,
    FINISH,
    FIRE,
    KEY_PUT,
    LEAD,
    OP_BEGIN,
    OP_END,
    PAUSE,
    PROBE,
    PROMOTE,
    PURGE,
    RECLAIM,
    RECOUNT,
    RELEASE,
    RENEW,
    REQUEUE,
    SUBMIT,
    VERIFY,
    WATCH,
    Code,
    Script,
)
from dtq_core.verify import Checked, Finding, Kind, Mend, Thing, Verified

T = TypeVar("T")
Arg = str | bytes | int
Band = tuple[str, str]
"""Queue and band: one stream."""


_THERE = {Code.OK, Code.AGAIN, Code.DUPLICATE}
"""Answers to a submission that mean that there is such a task."""


class Suspects(StrEnum):
    """What a reclaim does with a task that may be what ends the processes that it is in."""

    LEAVE = "leave"
    """Set it aside, for a process that runs nothing else."""
    ONLY = "only"
    """Take nothing else: this is such a process."""
    TAKE = "take"
    """Take it like any other: there is no such process."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One script call.

    Attributes:
        prefix: the partition it runs on, KEYS[1].
        script: what runs.
        args: its ARGV.
        decode: makes the result of the raw reply.
        repeatable: whether it may be sent again when its reply was lost.
        before: commands that are sent right ahead of it on its connection.
        after: commands that are sent right behind it. With any of either, ``decode`` takes the list
            of all replies, in which an error of a command behind it is a value.
        task_ids: what it submits, for the error that says that it may have arrived.
    """

    prefix: str
    script: Script
    args: Sequence[Arg]
    decode: Callable[[Any], T]
    repeatable: bool = True
    before: Sequence[Sequence[Any]] = ()
    after: Sequence[Sequence[Any]] = ()
    task_ids: tuple[str, ...] = ()


class Submitted(NamedTuple):
    """What became of one submission: OK, AGAIN, DUPLICATE, CONFLICT or CORRUPT."""

    code: Code
    task_id: str
    status: str


class Ended(NamedTuple):
    """What became of one finish, release, cancel or watch, and the task's status after it."""

    code: Code
    status: str


class Opened(NamedTuple):
    """What the begin of an operation found: OK, DONE, DOUBT, LOST, UNKNOWN or CORRUPT.

    Attributes:
        code: what it found.
        result: of one that is DONE, its result as JSON; empty where that could not be kept.
    """

    code: Code
    result: bytes


class OperationRun(NamedTuple):
    """One run of a guarded operation.

    Attributes:
        task_id: the task whose handler runs it.
        lease: of the attempt.
        name: of the operation.
        nonce: of this run alone.
    """

    task_id: str
    lease: int
    name: str
    nonce: str


class Taken(NamedTuple):
    """What a claim, reclaim or adopt brought.

    Attributes:
        claims: tasks to run now.
        absorbed: stale entries that were dropped.
        corrupt: records or bands that hold something foreign.
        cursors: of reclaim, where the next pass of each band begins.
        overdue: of claim, that what a dead worker left comes next.
        suspects: of reclaim, that tasks wait for a process of their own.
    """

    claims: list[Claim]
    absorbed: int
    corrupt: int
    cursors: list[bytes]
    overdue: bool = False
    suspects: bool = False


class Promoted(NamedTuple):
    """What a pass over a schedule did.

    Attributes:
        moved: tasks promoted or expired.
        bad: members without a sound record.
        seen: members looked at.
        next_ms: ms until the next one is due, -1 where there is none.
    """

    moved: int
    bad: int
    seen: int
    next_ms: int

    @property
    def rest_s(self) -> float:
        """Seconds until the next pass: 0 where more are due, infinity where none is scheduled."""
        if self.seen == MAX_BATCH_TASKS:
            return 0.0
        return self.next_ms / 1000 if self.next_ms >= 0 else math.inf


class Abandoned(NamedTuple):
    """How many entries of a dead worker were made overdue, and whether some are left."""

    moved: int
    left: int


class Beat(NamedTuple):
    """What a heartbeat learns.

    Attributes:
        cancels: how many cancels were asked of this worker so far.
        visibility_ms: the longest visibility timeout of all live workers.
    """

    cancels: int
    visibility_ms: int


class Lead(NamedTuple):
    """Whether the asker leads, the term, and the ms left of the lease."""

    leads: bool
    term: int
    left_ms: int


def _submitted(reply: Any) -> list[Submitted]:
    return [
        Submitted(Code(code), task_id.decode(), status.decode()) for code, task_id, status in reply
    ]


def _confirmed(confirmation: Confirmation, replies: list[Any]) -> list[Submitted]:
    """Read answers, which count only once what is there is confirmed, whoever submitted it."""
    answers = _submitted(replies[0])
    there = tuple(answer.task_id for answer in answers if answer.code in _THERE)
    reason = confirmation.missing(replies[1:])
    if there and reason is not None:
        raise OutcomeUnknownError(there, reason)
    return answers


def _ended(reply: Any) -> list[Ended]:
    return [Ended(Code(code), status.decode()) for code, status in reply]


def _codes(reply: Any) -> list[Code]:
    return [Code(code) for code in reply]


def _claim(fields: list[Any]) -> Claim:
    task_id, queue, band, entry, attempt, maximum, lease, spec, payload, *numbers = fields
    return Claim(
        task_id.decode(),
        queue.decode(),
        band.decode(),
        entry.decode(),
        int(attempt),
        int(maximum),
        int(lease),
        spec,
        payload,
        *map(int, numbers),
    )


def _adopted(reply: Any) -> Taken:
    absorbed, corrupt, tasks = reply
    return Taken([_claim(fields) for fields in tasks], absorbed, corrupt, [])


def _reclaimed(reply: Any) -> Taken:
    absorbed, corrupt, tasks, cursors, suspects = reply
    claims = [_claim(fields) for fields in tasks]
    return Taken(claims, absorbed, corrupt, cursors, suspects=bool(suspects))


def _claimed(reply: Any) -> Taken:
    absorbed, corrupt, tasks, overdue = reply
    return Taken([_claim(fields) for fields in tasks], absorbed, corrupt, [], bool(overdue))


def _claimed_woken(replies: Any) -> Taken:
    token, reply = replies
    taken = _claimed(reply)
    return taken._replace(overdue=taken.overdue or is_overdue(token))


def is_overdue(token: Any) -> bool:
    """Whether what BLPOP returned tells of an overdue entry."""
    return token is not None and token[1] == b"o"


def _verified(reply: Any) -> Verified:
    findings, tasks = reply
    return Verified(
        [
            Finding(Kind(kind.decode()), subject.decode("utf-8", "replace"), bool(mended))
            for kind, subject, mended in findings
        ],
        [Checked(*(value.decode() for value in task)) for task in tasks],
    )


def _flat(rows: Iterable[Iterable[Arg]]) -> list[Arg]:
    return [value for row in rows for value in row]


def batches(items: Iterable[T], size: int = MAX_BATCH_TASKS) -> Iterable[Sequence[T]]:
    """Cut items into lists of at most what one call takes."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


class Calls:
    """Makes the calls of one partition."""

    def __init__(self, prefix: str, events_maxlen: int, audit_maxlen: int = 0) -> None:
        """Take what every call needs.

        Args:
            prefix: of the partition.
            events_maxlen: about how many events are kept.
            audit_maxlen: about how many entries of the audit log are kept; 0: all.
        """
        self._prefix = prefix
        self._cap = events_maxlen
        self._audit_cap = audit_maxlen

    def submit(
        self, submissions: Sequence[Submission], confirmation: Confirmation | None = None
    ) -> Call[list[Submitted]]:
        """Submit: to QUEUED or SCHEDULED, for at most ``MAX_BATCH_TASKS`` tasks.

        Args:
            submissions: the tasks.
            confirmation: what the server is asked behind it; its answer to that is awaited.
        """
        call = Call(
            self._prefix,
            SUBMIT,
            [self._cap, *_flat(submissions)],
            _submitted,
            task_ids=tuple(submission.task_id for submission in submissions),
        )
        if confirmation is None:
            return call
        after = confirmation.commands(Keyspace(self._prefix))
        return replace(call, decode=partial(_confirmed, confirmation), after=after)

    def claim(
        self, worker: str, slots: int, bands: Sequence[Band], wait: Sequence[Any] = ()
    ) -> Call[Taken]:
        """QUEUED → RUNNING, for at most ``slots`` tasks, bands in the order given.

        Args:
            worker: who claims.
            slots: for how many tasks.
            bands: what to read.
            wait: a command that waits for a wake-up token and is sent ahead; none to claim now.
        """
        args: list[Arg] = [self._cap, worker, min(slots, MAX_BATCH_TASKS), MAX_CLAIM_BYTES]
        call = Call(self._prefix, CLAIM, args + _flat(bands), _claimed, repeatable=False)
        return replace(call, before=(wait,), decode=_claimed_woken) if wait else call

    def reclaim(
        self,
        worker: str,
        slots: int,
        idle_ms: int,
        bands: Sequence[Band],
        cursors: Sequence[bytes],
        suspects: Suspects = Suspects.TAKE,
    ) -> Call[Taken]:
        """Take what nobody renewed for ``idle_ms``; cursors are those of the last pass."""
        size = min(slots, MAX_BATCH_TASKS)
        args: list[Arg] = [self._cap, worker, size, MAX_CLAIM_BYTES, idle_ms, suspects]
        rows = [(queue, band, cursor) for (queue, band), cursor in zip(bands, cursors, strict=True)]
        return Call(self._prefix, RECLAIM, args + _flat(rows), _reclaimed, repeatable=False)

    def adopt(self, worker: str, known: Sequence[str], bands: Sequence[Band]) -> Call[Taken]:
        """Take the worker's own pending entries that are not among the known."""
        args: list[Arg] = [self._cap, worker, len(known), *known]
        return Call(self._prefix, ADOPT, args + _flat(bands), _adopted, repeatable=False)

    def finish(self, finishes: Sequence[Finish]) -> Call[list[Ended]]:
        """RUNNING → SUCCEEDED, RETRYING, DEAD_LETTERED, FAILED or CANCELLED."""
        return Call(self._prefix, FINISH, [self._cap, *_flat(finishes)], _ended)

    def release(self, releases: Sequence[Release]) -> Call[list[Ended]]:
        """RUNNING → QUEUED or SCHEDULED, no attempt spent."""
        return Call(self._prefix, RELEASE, [self._cap, *_flat(releases)], _ended)

    def renew(self, worker: str, leases: Sequence[tuple[str, int, bytes]]) -> Call[list[Code]]:
        """Renew leases, each given as task id, lease and progress (empty: none)."""
        return Call(self._prefix, RENEW, [worker, *_flat(leases)], _codes)

    def cancel(
        self, task_ids: Sequence[str], reason: str, operation: Operation | None = None
    ) -> Call[list[Ended]]:
        """Waiting → CANCELLED; a running task's worker is asked to stop.

        Args:
            task_ids: which.
            reason: kept with each.
            operation: of an operator; None for a client, whose cancels are not audited.
        """
        args = [*self._audited(operation), reason, *task_ids]
        return Call(self._prefix, CANCEL, args, _ended)

    def promote(self, schedule: str) -> Call[Promoted]:
        """SCHEDULED or RETRYING → QUEUED, of the schedule ``delay`` or ``retry``."""
        args: list[Arg] = [self._cap, schedule, MAX_BATCH_TASKS]
        return Call(self._prefix, PROMOTE, args, lambda reply: Promoted(*map(int, reply)))

    def expire(self) -> Call[Promoted]:
        """Waiting → EXPIRED, where the TTL has ended."""
        return Call(
            self._prefix,
            EXPIRE,
            [self._cap, MAX_BATCH_TASKS],
            lambda reply: Promoted(int(reply[0]), 0, int(reply[1]), int(reply[2])),
        )

    def abandon(
        self, worker: str, bands: Sequence[Band], *, seen_dead: bool = True
    ) -> Call[Abandoned]:
        """Make the entries of a dead worker overdue.

        Args:
            worker: its id.
            bands: where to look.
            seen_dead: whether the caller saw it die; otherwise a heartbeat that has not run out
                keeps everything as it is.
        """
        args: list[Arg] = [worker, int(seen_dead), MAX_BATCH_TASKS, *_flat(bands)]
        return Call(self._prefix, ABANDON, args, lambda reply: Abandoned(*reply))

    def beat(
        self, worker: str, dead_after_ms: int, visibility_ms: int, description: dict[str, Arg]
    ) -> Call[Beat]:
        """Say that a worker lives, and what it is."""
        args: list[Arg] = [worker, dead_after_ms, visibility_ms, *_flat(description.items())]
        return Call(self._prefix, BEAT, args, lambda reply: Beat(*map(int, reply)))

    def lead(self, scheduler: str, lease_ms: int) -> Call[Lead]:
        """Take or keep the lease of the leading scheduler; 0 ms gives it up."""
        args: list[Arg] = [scheduler, lease_ms]
        return Call(
            self._prefix,
            LEAD,
            args,
            lambda reply: Lead(bool(reply[0]), int(reply[1]), int(reply[2])),
        )

    def pause(
        self, operation: Operation, queues: Sequence[str], *, paused: bool
    ) -> Call[list[bool]]:
        """Pause queues, or resume them; answers for each whether that changed it."""
        args = [*self._audited(operation), int(paused), *queues]
        return Call(
            self._prefix, PAUSE, args, lambda reply: list(map(bool, reply)), repeatable=False
        )

    def cron_put(
        self,
        operation: Operation | None,
        name: str,
        definition: bytes,
        next_ms: int,
        *,
        anew: bool = True,
    ) -> Call[Code]:
        """Store a recurring schedule.

        Args:
            operation: of an operator; None for a worker that declares it.
            name: of the schedule.
            definition: of the schedule, encoded.
            next_ms: its next slot.
            anew: whether that holds also where it is there with another next slot.
        """
        args = [*self._audited(operation), name, definition, next_ms, int(anew)]
        return Call(self._prefix, CRON_PUT, args, Code)

    def cron_drop(
        self, operation: Operation | None, name: str, definition: bytes = b""
    ) -> Call[Code]:
        """Remove a recurring schedule, if it has a definition (empty: any)."""
        args = [*self._audited(operation), name, definition]
        return Call(self._prefix, CRON_DROP, args, Code, repeatable=False)

    def cron_pause(self, operation: Operation, name: str, next_ms: int | None) -> Call[Code]:
        """Pause a recurring schedule, or resume it with its next slot."""
        args = [*self._audited(operation), name, "" if next_ms is None else next_ms]
        return Call(self._prefix, CRON_PAUSE, args, Code, repeatable=False)

    def fire(
        self,
        operation: Operation | None,
        name: str,
        slots: tuple[str, int, int | None] | None,
        submissions: Sequence[Submission],
        *,
        alone: bool = False,
    ) -> Call[list[Code]]:
        """Submit the tasks of a recurring schedule: to QUEUED.

        Args:
            operation: of an operator; None for the scheduler.
            name: of the schedule.
            slots: the one that is due, as it is stored, the newest that this deals with, and the
                next one; None where it is fired by hand.
            submissions: its tasks.
            alone: whether nothing is submitted while its last task has not ended.
        """
        times: list[Arg] = ["", "", ""]
        if slots is not None:
            times = ["" if slot is None else slot for slot in slots]
        args = [*self._audited(operation), name, *times, int(alone), *_flat(submissions)]
        return Call(self._prefix, FIRE, args, _codes)

    def key_put(self, operation: Operation, name: str, before: bytes, text: bytes) -> Call[Code]:
        """Store an API key in the place of what was stored under its name (empty: nothing)."""
        args = [*self._audited(operation), name, before, text]
        return Call(self._prefix, KEY_PUT, args, Code)

    def requeue(
        self, operation: Operation, letters: Sequence[tuple[str, str]]
    ) -> Call[list[Ended]]:
        """DEAD_LETTERED or FAILED → QUEUED, at most ``MAX_BATCH_TASKS`` tasks.

        Each is given as its dead letter as it was seen ('': any), and task id.
        """
        return Call(self._prefix, REQUEUE, [*self._audited(operation), *_flat(letters)], _ended)

    def purge(
        self, operation: Operation, queue: str, band: str, task_ids: Sequence[str]
    ) -> Call[list[Code]]:
        """Waiting → CANCELLED, for tasks of a queue, and of a band unless that is ''."""
        args = [*self._audited(operation), queue, band, *task_ids]
        return Call(self._prefix, PURGE, args, _codes, repeatable=False)

    def discard(self, operation: Operation, letters: Sequence[tuple[str, str]]) -> Call[list[Code]]:
        """Remove dead letters for good, each given as its entry ('': unknown) and task id."""
        args = [*self._audited(operation), *_flat(letters)]
        return Call(self._prefix, DISCARD, args, _codes, repeatable=False)

    def verify(self, operation: Operation, mend: Mend, things: Sequence[Thing]) -> Call[Verified]:
        """Look whether things agree, at most ``MAX_BATCH_TASKS`` of them, and mend some."""
        args = [*self._audited(operation), mend, *_flat(things)]
        return Call(self._prefix, VERIFY, args, _verified)

    def recount(
        self, operation: Operation, queue: str, counters: Sequence[tuple[str, str, int]]
    ) -> Call[bool]:
        """Set counters of a queue, each given as name, value read before ('': none), right value.

        Answers whether it did: it does not if one of them has changed since it was read.
        """
        args = [*self._audited(operation), queue, *_flat(counters)]
        return Call(self._prefix, RECOUNT, args, bool)

    def _audited(self, operation: Operation | None) -> list[Arg]:
        """What every script takes that writes to the audit log; None where no operator acts."""
        return [self._cap, self._audit_cap, *(operation or NO_OPERATION)]

    def probe(self) -> Call[Code]:
        """Write a key that nobody reads."""
        return Call(self._prefix, PROBE, [], Code)

    def op_begin(self, run: OperationRun, ttl_ms: int, *, rerun: bool) -> Call[Opened]:
        """Begin a guarded operation, unless it is done.

        Args:
            run: the run that is to begin.
            ttl_ms: how long its record stays.
            rerun: whether it begins also where an earlier run is in doubt.
        """
        args: list[Arg] = [*run, int(rerun), ttl_ms]
        return Call(
            self._prefix, OP_BEGIN, args, lambda reply: Opened(Code(reply[0]), bytes(reply[1]))
        )

    def op_end(self, run: OperationRun, result: bytes | None, ttl_ms: int) -> Call[Code]:
        """End a run of a guarded operation.

        Args:
            run: the run that has ended.
            result: what it returned, as JSON, empty where that cannot be kept; None if it failed.
            ttl_ms: how long its record stays.
        """
        outcome = "failed" if result is None else "done"
        return Call(self._prefix, OP_END, [*run, outcome, result or b"", ttl_ms], Code)

    def watch(self, task_ids: Sequence[str]) -> Call[list[Ended]]:
        """Have the end of tasks announced: OK where it will be, ENDED where it was."""
        return Call(self._prefix, WATCH, list(task_ids), _ended)
