"""What Redis answers, as text and as numbers, whatever it is."""

from __future__ import annotations

_MAX_DIGITS = 15


def to_text(value: bytes | None) -> str:
    """Return an answer as text; none is empty, and what is no UTF-8 in it is replaced."""
    return (value or b"").decode("utf-8", "replace")


def to_number(value: bytes | None) -> int | None:
    """Return an answer as a whole number; None where it is none, or one that is too long."""
    return int(value) if value and value.isdigit() and len(value) <= _MAX_DIGITS else None
