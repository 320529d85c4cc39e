"""What a handler raises to decide its own fate, whatever its retry policy says."""

from __future__ import annotations

from dtq_core.limits import check_duration_ms


class Retry(Exception):
    """Raised by a handler: try again, as long as there are attempts left.

    Attributes:
        after: seconds until then; None leaves it to the retry policy.
        reason: why, as it is recorded.
    """

    def __init__(self, after: float | None = None, reason: str = "") -> None:
        """Ask for another attempt.

        Raises:
            InvalidOptionError: if ``after`` is not 0 s to ten years.
        """
        if after is not None:
            check_duration_ms("after", after)
        super().__init__(reason or "the handler asked for another attempt")
        self.after = after
        self.reason = reason


class GiveUp(Exception):
    """Raised by a handler: no further attempt can help; the task has failed for good.

    Attributes:
        reason: why, as it is recorded.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the handler gave up")
        self.reason = reason
