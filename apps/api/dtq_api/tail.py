"""Reading on in the event streams of all partitions, from a place that a client remembers.

A cursor holds, for each partition, the id of the last event that was read there, joined by commas.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dtq_api.problems import Kind, Problem
from dtq_core import reads
from dtq_core.reads import Event
from dtq_core.store import AsyncStore

_ID = re.compile(r"\d{1,15}-\d{1,19}|0")
_AT_ONCE = 500
_START = "0"


class Seen(NamedTuple):
    """An event, and the cursor that stands behind it."""

    event: Event
    cursor: str


class Tail:
    """Where one client reads."""

    def __init__(self, store: AsyncStore) -> None:
        """Take the connections of the deployment."""
        self._store = store
        self._partitions = store.partitions.all
        self._places = [_START] * len(self._partitions)
        self.gap = False

    async def start(self, cursor: str | None, newest: int) -> list[Seen]:
        """Begin at a place, or at the end.

        Args:
            cursor: of the last event that the client has seen; None where it has seen none.
            newest: how many past events a client wants that has seen none.

        Returns:
            What comes first. ``gap`` says whether events between are gone.

        Raises:
            Problem: for a cursor that is none of this deployment.
            RedisError: if the server cannot say.
        """
        if cursor is not None:
            self._places = self._read(cursor)
            self.gap = await self._lost_some()
            return await self.news()
        past: list[tuple[int, Event]] = []
        for index, keys in enumerate(self._partitions):
            found = await self._store.read(reads.last_events(keys, max(1, newest)))
            self._places[index] = found[-1].cursor if found else _START
            past += [(index, event) for event in found]
        shown = sorted(past, key=_time)[-newest:] if newest else []
        for index, event in reversed(shown):
            self._places[index] = _before(event)
        return self._in_order(shown)

    async def news(self) -> list[Seen]:
        """Return what has come since, perhaps not yet all of it. Errors as :meth:`start`."""
        found: list[tuple[int, Event]] = []
        for index, keys in enumerate(self._partitions):
            place = self._places[index]
            read = await self._store.read(reads.events(keys, place, _AT_ONCE), retry_s=0)
            found += [(index, event) for event in read]
        return self._in_order(sorted(found, key=_time))

    def _in_order(self, found: list[tuple[int, Event]]) -> list[Seen]:
        seen = []
        for index, event in found:
            self._places[index] = event.cursor
            seen.append(Seen(event, ",".join(self._places)))
        return seen

    def _read(self, cursor: str) -> list[str]:
        places = cursor.split(",")
        if len(places) != len(self._partitions) or not all(map(_ID.fullmatch, places)):
            raise Problem(Kind.INVALID, "the Last-Event-ID is not one of this deployment")
        return places

    async def _lost_some(self) -> bool:
        """Whether events may have been between the last one seen and the oldest that is kept."""
        for keys, place in zip(self._partitions, self._places, strict=True):
            oldest = await self._store.read(reads.events(keys, _START, 1))
            if oldest and place != _START and _number(_before(oldest[0])) > _number(place):
                return True
        return False


def _number(cursor: str) -> tuple[int, int]:
    ms, _, sequence = cursor.partition("-")
    return int(ms), int(sequence or 0)


def _time(found: tuple[int, Event]) -> tuple[int, int]:
    return _number(found[1].cursor)


def _before(event: Event) -> str:
    """The last place that is before an event, whether there was another at it or not."""
    ms, sequence = _number(event.cursor)
    return f"{ms}-{sequence - 1}" if sequence else f"{ms - 1}-{2**63 - 1}"
