"""What a running handler knows of its own task, and what it can say meanwhile."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

from dtq_core import codec
from dtq_core.limits import check_size

MAX_PROGRESS_BYTES = 4_096


class Context:
    """One attempt of a task, seen from inside its handler.

    A parameter annotated with this class is filled in by the worker. All of it may be used from any
    thread.

    Attributes:
        task_id: the id that submitting returned.
        name: the task's name.
        queue: the queue it came from.
        attempt: which start of the handler this is, from 1.
        max_attempts: how often the handler may start.
        deadline: when this attempt's timeout ends, with a time zone; None where it has none.
        slot: of a recurring task, the time it was fired for, in UTC; None for any other.
    """

    def __init__(
        self,
        *,
        task_id: str,
        name: str,
        queue: str,
        attempt: int,
        max_attempts: int,
        deadline: datetime | None = None,
        slot: datetime | None = None,
    ) -> None:
        self.task_id = task_id
        self.name = name
        self.queue = queue
        self.attempt = attempt
        self.max_attempts = max_attempts
        self.deadline = deadline
        self.slot = slot
        self._cancelled = False
        self._progress: bytes | None = None
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """The task's id, under the name that readers of a task see."""
        return self.task_id

    @property
    def cancelled(self) -> bool:
        """Whether to stop: cancelling was asked for, or another worker has taken the task over.

        An ``async def`` handler is also interrupted; a plain function has to look for itself.
        """
        return self._cancelled

    def progress(self, value: Any, note: str | None = None) -> None:
        """Say how far the task is; readers see the newest value within seconds.

        Costs about a microsecond and does no I/O: the worker sends it with its next renewal.

        Args:
            value: a fraction, or any small JSON value.
            note: a line for people; with it readers see ``{"value": …, "note": …}``.

        Raises:
            EncodingError: if the value has no JSON form.
            TooLargeError: if it takes more than ``MAX_PROGRESS_BYTES``.
        """
        shown = value if note is None else {"value": value, "note": note}
        text = codec.encode(shown, "progress")
        check_size("progress", len(text), MAX_PROGRESS_BYTES)
        with self._lock:
            self._progress = text

    def request_cancel(self) -> None:
        """For the worker: have :attr:`cancelled` say so."""
        self._cancelled = True

    @property
    def has_progress(self) -> bool:
        """For the worker: whether there is something new to take."""
        return self._progress is not None

    def take_progress(self) -> bytes | None:
        """For the worker: the newest progress as JSON, None where there is nothing new."""
        with self._lock:
            text, self._progress = self._progress, None
        return text
