"""Walks over things of which there may be many, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from dtq_core import reads
from dtq_core.reads import Read
from dtq_core.store import Store


class _Scanned(Protocol):
    """A page of SCAN and its kin: where to go on, 0 being the end."""

    @property
    def cursor(self) -> int: ...


P = TypeVar("P", bound=_Scanned)

_START = "0"


def scanned(store: Store, page_at: Callable[[int], Read[P]]) -> Iterator[P]:
    """Walk in the manner of SCAN: what stays is met, whatever comes and goes meanwhile.

    Args:
        store: where to look.
        page_at: the read of the page at a cursor.

    Raises:
        RedisError: if the server cannot say.
    """
    cursor: int | None = None
    while cursor != 0:
        page = store.read(page_at(cursor or 0))
        cursor = page.cursor
        yield page


def members_of(store: Store, schedule: str) -> Iterator[list[str]]:
    """Walk over a schedule. Errors as :func:`scanned`."""
    return (page.names for page in scanned(store, lambda at: reads.scan_schedule(schedule, at)))


def entries_of(store: Store, stream: str) -> Iterator[list[tuple[str, str]]]:
    """Walk over a stream, oldest first: entries, each with the task it names. Errors as above."""
    cursor = _START
    while page := store.read(reads.stream_entries(stream, cursor)):
        yield page
        cursor = page[-1][0]
