"""The lifecycle events of all partitions, in the order of time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from dtq_core import reads
from dtq_core.clock import epoch_ms
from dtq_core.reads import Event
from dtq_core.record import TaskInfo
from dtq_core.store import Store

_PAUSE_S = 0.25
_AT_ONCE = 500
_START = "0"
_FIRST = "TASK_SUBMITTED"


def newest_events(store: Store, limit: int) -> list[Event]:
    """Return the newest events, oldest first.

    Raises:
        RedisError: if the server cannot say.
    """
    return _Tails(store).start(limit)


def follow_events(store: Store, limit: int) -> Iterator[Event]:
    """Return the newest events, and then each as it comes, without end. Errors as above."""
    tails = _Tails(store)
    yield from tails.start(limit)
    while True:
        news = tails.read()
        yield from news
        if not news:
            time.sleep(_PAUSE_S)


def events_of(store: Store, info: TaskInfo) -> tuple[list[Event], bool]:
    """Return the events of a task that are still kept, oldest first.

    Args:
        store: of the deployment.
        info: the task.

    Returns:
        The events, and whether the first that was ever written is among them.

    Raises:
        RedisError: if the server cannot say.
    """
    keys = store.keys_of(info.id)
    found: list[Event] = []
    cursor = _START if info.submitted_at is None else str(epoch_ms(info.submitted_at) - 1)
    while page := store.read(reads.events(keys, cursor, _AT_ONCE)):
        found += (event for event in page if event.id == info.id)
        cursor = page[-1].cursor
    complete = bool(found) and found[0].type == _FIRST
    return found, complete


class _Tails:
    """Where reading goes on in each partition."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursors = dict.fromkeys(store.partitions.all, _START)

    def start(self, limit: int) -> list[Event]:
        """Return the newest of all."""
        events: list[Event] = []
        for keys in self._cursors:
            found = self._store.read(reads.last_events(keys, limit))
            if found:
                self._cursors[keys] = found[-1].cursor
            events += found
        return _in_order(events)[-limit:]

    def read(self) -> list[Event]:
        """Return what has come since; perhaps not yet all of it."""
        events: list[Event] = []
        for keys, cursor in self._cursors.items():
            found = self._store.read(reads.events(keys, cursor, _AT_ONCE))
            if found:
                self._cursors[keys] = found[-1].cursor
            events += found
        return _in_order(events)


def _in_order(events: Iterable[Event]) -> list[Event]:
    def key(event: Event) -> tuple[int, int]:
        ms, _, sequence = event.cursor.partition("-")
        return int(ms), int(sequence)

    return sorted(events, key=key)
