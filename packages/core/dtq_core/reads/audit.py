"""Reads of the audit log."""

from __future__ import annotations

from dtq_core.audit import Entry, Head, decode_head, decode_page
from dtq_core.keyspace import Keyspace
from dtq_core.reads.base import Read


def audit_head(keys: Keyspace) -> Read[Head]:
    """What the audit log says of itself."""
    command = ("HMGET", keys.audit_head, "number", "hash", "trimmed")
    return Read([command], lambda replies: decode_head(replies[0]))


def audit_after(keys: Keyspace, cursor: str, count: int = 500) -> Read[list[Entry]]:
    """Entries of the audit log later than a cursor ("0" for the oldest), oldest first."""
    command = ("XRANGE", keys.audit, f"({cursor}", "+", "COUNT", count)
    return Read([command], lambda replies: decode_page(replies[0]))


def audit_before(keys: Keyspace, cursor: str, count: int = 500) -> Read[list[Entry]]:
    """Entries of the audit log earlier than a cursor ("+" for the newest), newest first."""
    last = cursor if cursor == "+" else f"({cursor}"
    command = ("XREVRANGE", keys.audit, last, "-", "COUNT", count)
    return Read([command], lambda replies: decode_page(replies[0]))
