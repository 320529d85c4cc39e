"""Dead letters: which there are, running them again, and removing them for good."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from dtq_core import reads
from dtq_core.audit import operation
from dtq_core.calls import Calls, batches
from dtq_core.clock import mono_s
from dtq_core.errors import InvalidOptionError, LetterNotFoundError, TaskNotFoundError
from dtq_core.limits import MAX_BATCH_TASKS, check_name, check_task_id
from dtq_core.reads import Letter
from dtq_core.record import Attempt, TaskInfo
from dtq_core.scripts import Code
from dtq_core.states import Status
from dtq_core.store import Store

Progress = Callable[[int], None]
_FAILURES = frozenset({Status.DEAD_LETTERED, Status.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which dead letters are meant; what is None does not matter.

    Attributes:
        queue: of this queue.
        task: of this name.
        error: whose last attempt failed with an error of this type, as ``ValueError``.
        older_than_s: that are dead for longer, in seconds.
        newer_than_s: that are dead for less, in seconds.
        ids: of these tasks.
    """

    queue: str | None = None
    task: str | None = None
    error: str | None = None
    older_than_s: float | None = None
    newer_than_s: float | None = None
    ids: Sequence[str] = ()

    def __post_init__(self) -> None:
        others = (self.queue, self.task, self.error, self.older_than_s, self.newer_than_s)
        if self.ids and any(value is not None for value in others):
            raise InvalidOptionError("name tasks by their ids, or give filters, not both")
        if self.queue is not None:
            check_name("queue name", self.queue)
        if self.task is not None:
            check_name("task name", self.task)
        for task_id in self.ids:
            check_task_id(task_id)

    def meets(self, letter: Letter, age_s: float) -> bool:
        """Tell whether a letter of this age is meant."""
        return (
            self.queue in {None, letter.queue}
            and self.task in {None, letter.name}
            and self.error in {None, letter.error_type}
            and (self.older_than_s is None or age_s > self.older_than_s)
            and (self.newer_than_s is None or age_s < self.newer_than_s)
            and (not self.ids or letter.id in self.ids)
        )

    def __str__(self) -> str:
        """As the audit log names it."""
        named = {
            "queue": self.queue,
            "task": self.task,
            "error": self.error,
            "older-than": self.older_than_s,
            "newer-than": self.newer_than_s,
        }
        words = [f"{name}={value}" for name, value in named.items() if value is not None]
        shown = [f"id={task_id}" for task_id in self.ids[:3]]
        if len(self.ids) > len(shown):
            shown.append(f"and {len(self.ids) - len(shown)} more ids")
        return " ".join([*words, *shown]) or "all"


class Description(msgspec.Struct, frozen=True):
    """A task that failed, its payload (None where that cannot be read), and its ended attempts.

    One that is ``FAILED`` has no dead letter: ``letter`` then tells the same.
    """

    status: Status
    letter: Letter
    args: list[Any] | None
    kwargs: dict[str, Any] | None
    attempts: list[Attempt]


class Done(msgspec.Struct, frozen=True):
    """How much an operation met, and how much of it it changed."""

    matched: int
    changed: int


class _Found(NamedTuple):
    partition: int
    entry: str
    letter: Letter


def find_letters(store: Store, wanted: Filter) -> Iterator[Letter]:
    """Return the dead letters that are meant, the oldest first in each partition.

    Those that come while they are read, and those that go, may be among them or not.

    Args:
        store: of the deployment.
        wanted: which are meant.

    Raises:
        RedisError: if the server cannot say.
    """
    for found in _find(store, wanted):
        yield found.letter


class LetterPage(NamedTuple):
    """Part of a list of dead letters, and where it goes on; None where that is the end."""

    letters: list[Letter]
    next: str | None


def letter_page(store: Store, wanted: Filter, limit: int, cursor: str | None = None) -> LetterPage:
    """Return dead letters that are meant, and where those behind them begin.

    Args:
        store: of the deployment.
        wanted: which are meant.
        limit: how many at most.
        cursor: ``next`` of the page before; None for the first one.

    Raises:
        InvalidOptionError: for a cursor that is none.
        RedisError: if the server cannot say.
    """
    first, after = 0, _START
    if cursor is not None:
        if (found := _CURSOR.fullmatch(cursor)) is None:
            raise InvalidOptionError(f"cursor {cursor[:40]!r} is not one of a page of dead letters")
        first, after = int(found[1]), found[2]
    page = list(islice(_find(store, wanted, first, after), limit + 1))
    shown = page[:limit]
    more = f"{shown[-1].partition}:{shown[-1].entry}" if len(page) > limit else None
    return LetterPage([found.letter for found in shown], more)


_START = "0"
_CURSOR = re.compile(r"(\d{1,4}):(\d{1,15}-\d{1,15})")


def _find(store: Store, wanted: Filter, first: int = 0, after: str = _START) -> Iterator[_Found]:
    """Look from an entry of a partition on."""
    now_ms = store.read(reads.now_ms())
    for keys in store.partitions.all[first:]:
        cursor = after if keys.index == first else _START
        while page := store.read(reads.letter_entries(keys, cursor)):
            letters = store.read(reads.letters(keys, page))
            for entry, letter in zip(page, letters, strict=True):
                age_s = (now_ms - entry.at_ms) / 1000
                if age_s >= 0 and wanted.meets(letter, age_s):
                    yield _Found(keys.index, entry.entry, letter)
            if page[-1].at_ms > now_ms:  # what fails again meanwhile is not met again
                break
            cursor = page[-1].entry


def count_failed(store: Store, ids: Sequence[str]) -> int:
    """Return how many of some tasks could be requeued. Errors as :func:`find_letters`."""

    def home(task_id: str) -> int:
        return store.partitions.of(task_id).index

    return sum(
        info.status in _FAILURES
        for index, group in groupby(sorted(set(ids), key=home), key=home)
        for batch in batches(group)
        for info in store.read(reads.tasks(store.partitions.all[index], batch))
    )


def describe(store: Store, task_id: str) -> Description:
    """Return all that is known of a dead letter, or of a task that is ``FAILED``.

    Raises:
        InvalidNameError: if it is no id at all.
        TaskNotFoundError: if there is no such task.
        LetterNotFoundError: if the task did not fail.
        RedisError: if the server cannot say.
    """
    keys = store.keys_of(task_id)
    info = store.read(reads.task(keys, task_id))
    if info is None:
        raise TaskNotFoundError(task_id)
    entry = store.read(reads.letter_of(keys, task_id))
    if entry is not None:
        letter: Letter | None = store.read(reads.letters(keys, [entry]))[0]
    elif info.status is Status.FAILED:
        letter = None
    else:
        raise LetterNotFoundError(task_id, info.status)
    payload = store.read(reads.payload(keys, task_id))
    ended = store.read(reads.attempts(keys, task_id)) or []
    return Description(info.status, letter or _of_failed(info, ended), *payload, ended)


def _of_failed(info: TaskInfo, ended: Sequence[Attempt]) -> Letter:
    """A task that has no dead letter, told as one."""
    error = (ended[-1].error or {}) if ended else {}
    return Letter(
        id=info.id,
        name=info.name,
        queue=info.queue,
        attempt=info.attempt,
        requeues=info.requeues,
        error_type=str(error.get("type", "")),
        reason=info.error or "",
        at=info.finished_at or "",
    )


def requeue(
    store: Store,
    wanted: Filter,
    who: str,
    reason: str = "",
    *,
    rate: float | None = None,
    progress: Progress = lambda done: None,
) -> Done:
    """Have failed tasks run again: their attempts begin anew, their history stays.

    Ids may also be those of tasks that are ``FAILED``, which have no dead letter.

    Args:
        store: of the deployment.
        wanted: which are meant.
        who: who does it, for the audit log.
        reason: why, for the audit log.
        rate: how many a second at most; None for as many as possible.
        progress: told how many were requeued so far.

    Raises:
        InputError: for a reason that is refused; nothing was done.
        RedisError: if the server cannot do it; what was requeued until then stays so.
    """
    act = operation("dlq.requeue", who, reason, str(wanted))
    pace = _Pace(rate)

    def send(calls: Calls, letters: Sequence[tuple[str, str]]) -> int:
        pace.wait(len(letters))
        answers = store.run(calls.requeue(act, letters))
        return sum(answer.code in {Code.OK, Code.AGAIN} for answer in answers)

    found: Iterable[tuple[int, tuple[str, str]]] = (
        (
            (store.partitions.of(task_id).index, ("", task_id))
            for task_id in dict.fromkeys(wanted.ids)
        )
        if wanted.ids
        else ((f.partition, (f.entry, f.letter.id)) for f in _find(store, wanted))
    )
    return _in_batches(store, found, send, progress, pace.batch)


def discard(
    store: Store,
    wanted: Filter,
    who: str,
    reason: str = "",
    *,
    progress: Progress = lambda done: None,
) -> Done:
    """Remove dead letters for good, with all that is kept of their tasks.

    Arguments and errors as :func:`requeue`. The audit log keeps the ids.
    """
    act = operation("dlq.purge", who, reason, str(wanted))

    def send(calls: Calls, letters: Sequence[tuple[str, str]]) -> int:
        return store.run(calls.discard(act, letters)).count(Code.OK)

    found = ((f.partition, (f.entry, f.letter.id)) for f in _find(store, wanted))
    return _in_batches(store, found, send, progress, MAX_BATCH_TASKS)


def _in_batches(
    store: Store,
    found: Iterable[tuple[int, Any]],
    send: Callable[[Calls, Sequence[Any]], int],
    progress: Progress,
    size: int,
) -> Done:
    """Gather what lies in one partition, and send it before another one's."""
    matched = changed = 0
    for index, group in groupby(found, key=itemgetter(0)):
        for batch in batches((item for _, item in group), size):
            changed += send(store.calls[index], batch)
            matched += len(batch)
            progress(changed)
    return Done(matched, changed)


class _Pace:
    """Keeps to a rate, in batches of a tenth of a second."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next_s = mono_s()
        tenth = MAX_BATCH_TASKS if rate is None else int(rate / 10)
        self.batch = max(1, min(MAX_BATCH_TASKS, tenth))

    def wait(self, count: int) -> None:
        """Wait until so many more may go."""
        if self._rate is None:
            return
        time.sleep(max(0.0, self._next_s - mono_s()))
        self._next_s = max(self._next_s, mono_s()) + count / self._rate
