"""Ids of tasks, the newest first, from what Redis has in order already.

A source gives ids page by page, and says below which time the rest of it lies: no entry of a stream
is older than the task that it names. What is newer than the rest of every source is in its place,
and is handed out before anything else is read. A schedule and a walk over all keys are in no order
of this kind, so they are read to their end first.

Times of tasks are those in their ids (UUIDv7), by the clocks of those who submit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

from dtq_client.queries.streams import delivered, streams_of
from dtq_client.queries.walks import members_of, scanned
from dtq_core import reads
from dtq_core.calls import batches
from dtq_core.clock import rfc3339
from dtq_core.keyspace import Keyspace
from dtq_core.states import Status
from dtq_core.store import Store

_TIME_DIGITS = 12
_NEWEST = "+"
_OLDEST = "0"
_ALL = "~"
"""Stands for a time later than all: it sorts behind every digit."""

INDEXED = frozenset(
    {
        Status.QUEUED,
        Status.SCHEDULED,
        Status.RETRYING,
        Status.RUNNING,
        Status.DEAD_LETTERED,
    }
)
"""Statuses whose tasks are all in a stream or a schedule."""


class Candidate(NamedTuple):
    """A task id, and the index of the partition it was found in."""

    task_id: str
    partition: int


class _Page(NamedTuple):
    """Ids from a source, and the time (as in ids) below which the rest of it lies."""

    ids: Collection[str]
    rest: str


class Candidates:
    """Hands out batches of ids, the newest first, for as long as there are steps left.

    Attributes:
        unseen: the time (as in ids) up to which tasks may not have been handed out yet; None once
            all were.
    """

    def __init__(
        self, store: Store, statuses: Collection[Status], queue: str | None, steps: int
    ) -> None:
        """Choose the sources.

        Args:
            store: where to look.
            statuses: those wanted; all where there are none.
            queue: the one wanted; None for all.
            steps: how many reads may be made.

        Raises:
            RedisError: if the server cannot say.
        """
        self._steps = steps
        self._sources: dict[tuple[int, int], tuple[str, Iterator[_Page]]] = {}
        for keys in store.partitions.all:
            for number, pages in enumerate(_sources(store, keys, statuses, queue)):
                self._sources[keys.index, number] = (_ALL, pages)

    @property
    def unseen(self) -> str | None:
        """See above."""
        return max((rest for rest, _ in self._sources.values()), default=None)

    def batches(self) -> Iterator[list[Candidate]]:
        """Return ids, at most 500 at once, each older than the ones before. Errors as above.

        Where the steps are used up, those whose place is not known come last.
        """
        for handed_out in self._in_order():
            yield from map(list, batches(sorted(handed_out, reverse=True)))

    def _in_order(self) -> Iterator[set[Candidate]]:
        waiting: set[Candidate] = set()
        seen: set[Candidate] = set()
        while self._sources and self._steps > 0:
            before = self.unseen
            waiting |= self._advance() - seen
            rest = self.unseen
            if rest != before:
                newer = {c for c in waiting if rest is None or time_in(c.task_id) > rest}
                waiting -= newer
                seen |= newer
                yield newer
        yield waiting

    def _advance(self) -> set[Candidate]:
        """Read a page of the source whose rest is the newest."""
        key = max(self._sources, key=lambda key: self._sources[key][0])
        _, pages = self._sources[key]
        self._steps -= 1
        page = next(pages, None)
        if page is None:
            del self._sources[key]
            return set()
        self._sources[key] = (page.rest, pages)
        return {Candidate(task_id, key[0]) for task_id in page.ids}


def _sources(
    store: Store, keys: Keyspace, statuses: Collection[Status], queue: str | None
) -> Iterator[Iterator[_Page]]:
    if not statuses or not INDEXED.issuperset(statuses):
        yield _everything(store, keys)
        return
    if Status.SCHEDULED in statuses:
        yield _schedule(store, keys.delay_schedule)
    if Status.RETRYING in statuses:
        yield _schedule(store, keys.retry_schedule)
    if Status.DEAD_LETTERED in statuses:
        yield _backwards(store, keys.dlq)
    if Status.QUEUED in statuses:
        yield from (_backwards(store, key) for key in _streams(store, keys, queue))
    elif Status.RUNNING in statuses:
        yield _held(store, keys, queue)


def _streams(store: Store, keys: Keyspace, queue: str | None) -> list[str]:
    queues = store.read(reads.queue_names(keys)) if queue is None else [queue]
    return [stream.key for stream in streams_of(store, keys, queues)]


def _backwards(store: Store, key: str) -> Iterator[_Page]:
    """A stream from its newest end; the entries of what runs are in it as well."""
    cursor = _NEWEST
    while page := store.read(reads.entries_before(key, cursor)):
        cursor = page[-1][0]
        yield _Page([task_id for _, task_id in page if task_id], _time_of(cursor))


def _schedule(store: Store, key: str) -> Iterator[_Page]:
    yield from (_Page(members, _ALL) for members in members_of(store, key))


def _held(store: Store, keys: Keyspace, queue: str | None) -> Iterator[_Page]:
    """What workers hold: no more than they may run, and what dead ones have left."""
    queues = store.read(reads.queue_names(keys)) if queue is None else [queue]
    streams = streams_of(store, keys, queues)
    last_delivered = store.read(delivered(streams))
    for stream, last in zip(streams, last_delivered, strict=True):
        cursor = _OLDEST
        while last and (entries := store.read(reads.pending_entries(stream.key, cursor))):
            cursor = entries[-1]
            found = store.read(reads.tasks_of_entries(stream.key, entries))
            yield _Page(found, _ALL)


def _everything(store: Store, keys: Keyspace) -> Iterator[_Page]:
    """The newest by their events, then, by a walk over all keys, those older than any event."""
    rest = _ALL
    for page in _backwards(store, keys.events):
        yield page
        rest = page.rest
    for found in scanned(store, partial(reads.scan, keys)):
        yield _Page(found.names, rest)


def time_in(task_id: str) -> str:
    """Return the part of an id that says when the task was submitted."""
    return task_id[:_TIME_DIGITS]


def at_of(time: str) -> str | None:
    """Return a time as in ids in RFC 3339; None for one later than all, or of a foreign key."""
    try:
        return rfc3339(int(time, 16))
    except (ValueError, OverflowError):
        return None


def _time_of(entry: str) -> str:
    """The time of an entry, written as in ids."""
    return f"{int(entry.partition('-')[0]):0{_TIME_DIGITS}x}"
