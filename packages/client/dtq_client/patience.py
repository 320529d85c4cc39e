"""How long a caller is willing to wait: one limit for all the steps of a call."""

from __future__ import annotations

from dtq_core.clock import mono_s
from dtq_core.limits import check_duration_ms


class Patience:
    """A limit that runs from the moment it is made."""

    def __init__(self, timeout_s: float | None) -> None:
        """Begin to wait.

        Args:
            timeout_s: how long; None for as long as it takes.

        Raises:
            InvalidOptionError: if that is no number of seconds.
        """
        if timeout_s is not None:
            check_duration_ms("timeout", timeout_s)
        self._end_s = None if timeout_s is None else mono_s() + timeout_s

    @property
    def left_s(self) -> float | None:
        """Seconds left, None for as long as it takes."""
        return None if self._end_s is None else max(0.0, self._end_s - mono_s())

    def at_most(self, seconds: float) -> float:
        """Return a time, cut to what is left."""
        left = self.left_s
        return seconds if left is None else min(seconds, left)
