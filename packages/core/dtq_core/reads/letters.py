"""Reads of dead letters, with what is known of their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dtq_core.clock import rfc3339
from dtq_core.keyspace import Keyspace
from dtq_core.reads.base import Read
from dtq_core.record import INFO_FIELDS, decode_attempt, decode_info
from dtq_core.replies import to_text


class LetterEntry(NamedTuple):
    """A dead letter as it lies in the stream."""

    entry: str
    id: str
    queue: str
    reason: str

    @property
    def at_ms(self) -> int:
        """When it was written, in ms of Redis time."""
        return int(self.entry.partition("-")[0])


class Letter(msgspec.Struct, frozen=True):
    """A dead letter.

    Attributes:
        id: of the task.
        name: of the task; empty where its record is gone or not dtq's.
        queue: where it was.
        attempt: the one after which it was given up.
        requeues: how often it was requeued before.
        error_type: of the last attempt; empty where that ended otherwise.
        reason: why it was given up.
        at: when; RFC 3339, Redis time.
    """

    id: str
    name: str
    queue: str
    attempt: int
    requeues: int
    error_type: str
    reason: str
    at: str


def letter_entries(keys: Keyspace, after: str, count: int = 200) -> Read[list[LetterEntry]]:
    """Dead letters later than a cursor ("0" for the oldest), oldest first."""

    def decode(replies: list[Any]) -> list[LetterEntry]:
        return [
            LetterEntry(
                to_text(entry),
                *(to_text(fields.get(name, b"")) for name in (b"id", b"queue", b"reason")),
            )
            for entry, fields in replies[0]
        ]

    return Read([("XRANGE", keys.dlq, f"({after}", "+", "COUNT", count)], decode)


def letter_of(keys: Keyspace, task_id: str) -> Read[LetterEntry | None]:
    """The dead letter of a task; None where it has none."""

    def decode(replies: list[Any]) -> LetterEntry | None:
        entry, queue, reason = (to_text(value) for value in replies[0])
        return LetterEntry(entry, task_id, queue, reason) if entry else None

    return Read([("HMGET", keys.task(task_id), "letter_id", "queue", "error")], decode)


def letters(keys: Keyspace, entries: Sequence[LetterEntry]) -> Read[list[Letter]]:
    """Dead letters with what is known of their tasks."""

    def decode(replies: list[Any]) -> list[Letter]:
        rows = zip(entries, replies[::2], replies[1::2], strict=True)
        return [_letter(entry, values, last) for entry, values, last in rows]

    commands: list[Sequence[Any]] = []
    for entry in entries:
        commands.append(("HMGET", keys.task(entry.id), *INFO_FIELDS))
        commands.append(("LRANGE", keys.attempts(entry.id), -1, -1))
    return Read(commands, decode, tolerant=True)


def _letter(
    entry: LetterEntry, values: list[bytes | None] | None, last: list[bytes] | None
) -> Letter:
    info = None if values is None else decode_info(entry.id, values)
    error = (decode_attempt(last[0]).error or {}) if last else {}
    return Letter(
        id=entry.id,
        name=info.name if info else "",
        queue=info.queue if info else entry.queue,
        attempt=info.attempt if info else 0,
        requeues=info.requeues if info else 0,
        error_type=str(error.get("type", "")),
        reason=entry.reason,
        at=rfc3339(entry.at_ms),
    )
