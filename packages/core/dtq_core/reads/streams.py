"""Reads of what leads to tasks: streams and schedules, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtq_core.keyspace import GROUP
from dtq_core.reads.base import Page, Read
from dtq_core.replies import to_text


def stream_entries(key: str, after: str, count: int = 500) -> Read[list[tuple[str, str]]]:
    """Entries of a stream later than a cursor ("0" for the oldest), each with the task it names."""

    def decode(replies: list[Any]) -> list[tuple[str, str]]:
        return [
            (to_text(entry), to_text((fields or {}).get(b"id", b"")))
            for entry, fields in replies[0]
        ]

    return Read([("XRANGE", key, f"({after}", "+", "COUNT", count)], decode)


def entries_before(key: str, cursor: str, count: int = 500) -> Read[list[tuple[str, str]]]:
    """Entries of a stream earlier than a cursor ("+" for the newest), each with its task."""
    last = cursor if cursor == "+" else f"({cursor}"

    def decode(replies: list[Any]) -> list[tuple[str, str]]:
        return [(to_text(entry), to_text(fields.get(b"id", b""))) for entry, fields in replies[0]]

    return Read([("XREVRANGE", key, last, "-", "COUNT", count)], decode)


def pending_entries(key: str, after: str, count: int = 500) -> Read[list[str]]:
    """Entries of a stream that workers hold, later than a cursor ("0" for the oldest)."""
    # In bytes, so that redis-py, which expects a summary, leaves the reply as it is.
    command = (b"XPENDING", key, GROUP, f"({after}", "+", count)
    return Read([command], lambda replies: [to_text(row[0]) for row in replies[0]])


def tasks_of_entries(key: str, entries: Sequence[str]) -> Read[list[str]]:
    """The tasks that entries of a stream name; entries that are gone are left out."""

    def decode(replies: list[Any]) -> list[str]:
        return [to_text(fields.get(b"id", b"")) for found in replies for _, fields in found]

    return Read([("XRANGE", key, entry, entry) for entry in entries], decode)


def scan_schedule(key: str, cursor: int, count: int = 500) -> Read[Page]:
    """Part of a walk over a schedule, in no order, whatever leaves it meanwhile."""

    def decode(replies: list[Any]) -> Page:
        following, found = replies[0]
        return Page([to_text(member) for member, _ in found], int(following))

    return Read([("ZSCAN", key, cursor, "COUNT", count)], decode)
