"""What a worker has in its hands: one claim, how it runs, and why it is to stop."""

from __future__ import annotations

import asyncio
from enum import Enum

from dtq_core.clock import mono_s
from dtq_core.record import Claim
from dtq_tasks import Context


class Stop(Enum):
    """Why a running handler is told to stop."""

    CANCEL = "cancelling was asked for"
    LOST = "the lease was lost"
    TIMEOUT = "the attempt took too long"
    SHUTDOWN = "the worker stops"


class Held:
    """One claim in hand.

    Attributes:
        claim: the attempt and its lease.
        renewed_s: when its lease was last known to be good, monotonic.
        name: the task's name, once it is known.
        began_s: when the handler was begun, monotonic; 0 before that.
        context: what the handler sees, once it runs.
        progress: what the handler last said, as long as Redis has not confirmed it.
        work: the asyncio task that executes it.
        in_thread: whether the handler runs in a thread, which cannot be interrupted.
        stop: why it was told to stop, if it was.
        interruptible: whether ``work`` may be cancelled now: it has begun, and not in a thread.
        reported: whether its outcome is out; what comes later is dropped.
    """

    __slots__ = (
        "began_s",
        "claim",
        "context",
        "in_thread",
        "interruptible",
        "name",
        "progress",
        "renewed_s",
        "reported",
        "stop",
        "work",
    )

    def __init__(self, claim: Claim, renewed_s: float) -> None:
        self.claim = claim
        self.renewed_s = renewed_s
        self.name = ""
        self.began_s = 0.0
        self.context: Context | None = None
        self.progress = b""
        self.work: asyncio.Task[None] | None = None
        self.in_thread = False
        self.interruptible = False
        self.stop: Stop | None = None
        self.reported = False

    @property
    def key(self) -> tuple[str, int]:
        """Task id and lease: a task can be held again while an older attempt still runs."""
        return self.claim.task_id, self.claim.lease

    def told_to_stop(self) -> bool:
        """Whether anybody has interrupted it."""
        return self.stop is not None

    @property
    def has_progress(self) -> bool:
        """Whether there is progress that Redis has not confirmed."""
        return bool(self.progress) or (self.context is not None and self.context.has_progress)

    def take_progress(self) -> bytes:
        """Return the newest progress that Redis has not confirmed; empty for none."""
        newest = self.context.take_progress() if self.context is not None else None
        self.progress = newest or self.progress
        return self.progress

    def interrupt(self, stop: Stop) -> None:
        """Tell the handler to stop; the first reason counts. On the loop's own thread only."""
        if self.stop is not None or self.reported:
            return
        self.stop = stop
        if self.context is not None:
            self.context.request_cancel()
        if self.work is not None and self.interruptible:
            self.work.cancel()


def new_held(claims: list[Claim]) -> list[Held]:
    """Take claims in hand, as of now."""
    now = mono_s()
    return [Held(claim, now) for claim in claims]
