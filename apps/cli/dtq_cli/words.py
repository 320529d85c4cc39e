"""Numbers with their nouns."""

from __future__ import annotations


def many(count: int, one: str, more: str | None = None) -> str:
    """Return a number with what it counts.

    Args:
        count: the number.
        one: the noun, or what is said of one.
        more: the same for any other number; unless given, ``one`` with an s.
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
