"""Two clocks with two names: one to store, one to measure.

Redis time, read inside the scripts, decides everything that several machines must agree on. The
host's wall clock is used only for what is shown to a person.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

mono_s = time.monotonic
"""Seconds of a clock that never jumps; for measuring durations within this process."""


def wall_ms() -> int:
    """Return milliseconds since the epoch by this host's clock."""
    return time.time_ns() // 1_000_000


def rfc3339(ms: int) -> str:
    """Return a time in milliseconds since the epoch as RFC 3339 text in UTC."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def epoch_ms(at: str) -> int:
    """Return a time in ms of the epoch, of its RFC 3339 text."""
    return round(datetime.fromisoformat(at).timestamp() * 1000)
