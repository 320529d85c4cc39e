"""The counters of a queue, made by hand."""

from __future__ import annotations

from dtq_core.reads import QueueInfo
from dtq_core.states import Status


def queue(name: str, paused_since: str | None = None, **counts: int) -> QueueInfo:
    """Return a queue with these counters, named in lower case; the others are 0."""
    tasks = {status: counts.pop(status.lower(), 0) for status in Status}
    others = {"absorbed": 0, "reclaimed": 0, "released": 0} | counts
    return QueueInfo(name, paused_since, tasks, **others)
