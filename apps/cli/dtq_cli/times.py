"""Times and durations, as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def parse(at: str) -> datetime:
    """Return a time from its RFC 3339 text."""
    return datetime.fromisoformat(at)


def duration(seconds: float) -> str:
    """Return a duration in its largest unit: ``0.25 s``, ``59 s``, ``5 min``, ``3 h``, ``2 d``."""
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def between(start: str | None, end: str | None) -> str | None:
    """Return how long it took, where both ends are known."""
    if start is None or end is None:
        return None
    return duration(max(0.0, (parse(end) - parse(start)).total_seconds()))


def age(at: str | None) -> str | None:
    """Return how long ago a time was, by this host's clock."""
    return None if at is None else duration(max(0, _seconds_since(at)))


def ago(at: str | None) -> str | None:
    """Return the same in words, or how far ahead the time is."""
    if at is None:
        return None
    seconds = _seconds_since(at)
    return f"in {duration(-seconds)}" if seconds < 0 else f"{duration(seconds)} ago"


def _seconds_since(at: str) -> int:
    return round((datetime.now(UTC) - parse(at)).total_seconds())


def local(at: str | None) -> str | None:
    """Return a time on this host's clock, and how far it is from now."""
    if at is None:
        return None
    return f"{parse(at).astimezone():%Y-%m-%d %H:%M:%S} ({ago(at)})"


def clock(at: str) -> str:
    """Return the time of day on this host's clock."""
    return f"{parse(at).astimezone():%H:%M:%S.%f}"[:-3]


def moment(at: str) -> str:
    """Return the time of day on this host's clock, with the date where that is not today's."""
    there = parse(at).astimezone()
    if there.date() == datetime.now().astimezone().date():
        return clock(at)
    return f"{there:%Y-%m-%d} {clock(at)}"
