"""The audit log: what operators did, by whom, when and why; and the check that nobody changed it.

The scripts write it (``lua/lib/audit.lua``), in the step that does what it says. Entries are
numbered, and each carries the SHA-1 of its predecessor's hash and of its own values: whoever edits,
removes or inserts an entry has to rewrite all later ones and the head, which whoever noted an
earlier hash will see. A log that was shortened as ``audit_maxlen`` asks begins later, as its head
says, and is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import uuid_utils

from dtq_core.clock import rfc3339
from dtq_core.errors import InvalidOptionError
from dtq_core.replies import to_number, to_text

MAX_REASON_CHARS = 1_000


class Operation(NamedTuple):
    """One act of an operator, which may take many script calls; as the scripts take it.

    Attributes:
        id: unique; the entries of all its calls carry it.
        action: what is done, as ``queue.pause``.
        who: who does it, as ``os:ann@shop-1`` or ``key:deploy``.
        reason: why; may be empty.
        scope: what it was asked for, as ``queue=mail``.
    """

    id: str
    action: str
    who: str
    reason: str
    scope: str


NO_OPERATION = Operation("", "", "", "", "")
"""Where nothing is done by an operator, and the log is told nothing."""


def operation(action: str, who: str, reason: str, scope: str) -> Operation:
    """Begin an operation.

    Args:
        action: what is done.
        who: who does it.
        reason: why; may be empty.
        scope: what it was asked for.

    Raises:
        InvalidOptionError: for a reason that is too long or cannot be written as UTF-8.
    """
    if len(reason) > MAX_REASON_CHARS:
        raise InvalidOptionError(
            f"the reason is {len(reason):,} characters, over the limit of {MAX_REASON_CHARS:,}"
        )
    if not reason.isprintable():
        raise InvalidOptionError("the reason holds characters that cannot be printed")
    return Operation(uuid_utils.uuid7().hex, action, who, reason, scope)


class AuditEntry(msgspec.Struct, frozen=True):
    """One entry of the log: one script call of an operation.

    Attributes:
        number: counted from 1 in its partition.
        at: when; RFC 3339, Redis time.
        operation: the id that all entries of one operation share.
        action: what was done.
        who: who did it.
        reason: why.
        scope: what was asked for.
        matched: how many things that met.
        changed: how many of them it changed.
        ids: the tasks that are gone from Redis since.
        hash: of this entry and all before it.
    """

    number: int
    at: str
    operation: str
    action: str
    who: str
    reason: str
    scope: str
    matched: int
    changed: int
    ids: list[str]
    hash: str


class Entry(NamedTuple):
    """An entry as it lies in Redis: its id in the stream, and its fields."""

    cursor: str
    fields: dict[bytes, bytes]


class Head(NamedTuple):
    """What the log says of itself; 0 and empty before there is any entry.

    Attributes:
        number: of the newest entry.
        hash: of the newest entry.
        trimmed: how many of the oldest were removed, as ``audit_maxlen`` asks.
    """

    number: int
    hash: str
    trimmed: int = 0


_HASHED = (
    b"number",
    b"at_ms",
    b"operation",
    b"action",
    b"who",
    b"reason",
    b"scope",
    b"matched",
    b"changed",
    b"ids",
)


class Chain:
    """Checks a log, entry by entry from its beginning."""

    def __init__(self, head: Head) -> None:
        """Begin before the first entry; the head was read before any of them."""
        self._head = head
        self._first = head.trimmed + 1
        self.number = head.trimmed
        self.hash = ""

    def problem(self, entry: Entry) -> str | None:
        """Look at the next entry; say what is wrong with it, or None."""
        fields = entry.fields
        number, found = to_number(fields.get(b"number")), to_text(fields.get(b"hash"))
        if number is None or any(name not in fields for name in _HASHED):
            return f"entry {entry.cursor} is not of the form of the log"
        if number != self.number + 1:
            return f"where entry {self.number + 1} should be is entry {number}"
        # The entry before the first one was trimmed away, and with it what its hash is made of.
        checkable = self._first == 1 or number > self._first
        if checkable and found != digest(self.hash, fields):
            return f"entry {number} ({entry.cursor}) is not what was written"
        self.number, self.hash = number, found
        if number == self._head.number and found != self._head.hash:
            return f"the head has another hash than entry {number}"
        return None

    def problem_at_end(self) -> str | None:
        """Say what is wrong with where the log ends, or None; it may have grown meanwhile."""
        if self.number < self._head.number:
            return f"the log ends at entry {self.number}, {self._head.number} were written"
        return None


def digest(previous: str, fields: dict[bytes, bytes]) -> str:
    """Return the hash of an entry, given that of the one before."""
    values = [fields[name] for name in _HASHED]
    text = b",".join(b"%d:%s" % (len(value), value) for value in values)
    return hashlib.sha1(previous.encode() + b"\n" + text, usedforsecurity=False).hexdigest()


def decode_head(values: Sequence[bytes | None]) -> Head:
    """Read the fields number, hash and trimmed of the head."""
    number, found, trimmed = values
    return Head(to_number(number) or 0, to_text(found), to_number(trimmed) or 0)


def decode_entry(entry: Entry) -> AuditEntry:
    """Read an entry; what is missing or no number in it is empty or 0."""

    def text(name: bytes) -> str:
        return to_text(entry.fields.get(name))

    def number(name: bytes) -> int:
        return to_number(entry.fields.get(name)) or 0

    return AuditEntry(
        number=number(b"number"),
        at=rfc3339(number(b"at_ms")),
        operation=text(b"operation"),
        action=text(b"action"),
        who=text(b"who"),
        reason=text(b"reason"),
        scope=text(b"scope"),
        matched=number(b"matched"),
        changed=number(b"changed"),
        ids=text(b"ids").split(),
        hash=text(b"hash"),
    )


def decode_page(reply: Any) -> list[Entry]:
    """Read the reply of XRANGE or XREVRANGE."""
    return [Entry(cursor.decode("ascii", "replace"), fields or {}) for cursor, fields in reply]
