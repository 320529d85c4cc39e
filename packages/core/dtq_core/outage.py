"""While something fails in a loop: one line when that begins, longer pauses, one line after.

What fails and works by turns says so once in a while, not each time.
"""

from __future__ import annotations

from typing import Any

from dtq_core.clock import mono_s

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_QUIET_S = 10.0
"""From one line that something fails to the next."""


class Outage:
    """Of one thing that a loop does again and again."""

    def __init__(self, log: Any, begins: str, ends: str) -> None:
        """Begin with nothing wrong.

        Args:
            log: the logger of the loop.
            begins: the line for the first failure, at warning.
            ends: the line for the first success after failures, at info.
        """
        self._log = log
        self._begins = begins
        self._ends = ends
        self._pause_s = 0.0
        self._said = False
        self._quiet_until_s = 0.0

    def met(self, error: Exception, **details: Any) -> float:
        """Note a failure.

        Args:
            error: what was raised.
            details: more for the line.

        Returns:
            The seconds to wait before the next try: twice as long each time, up to 2.
        """
        now = mono_s()
        if not self._said and now >= self._quiet_until_s:
            self._log.warning(self._begins, error=str(error), **details)
            self._said = True
            self._quiet_until_s = now + _QUIET_S
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s or _FIRST_PAUSE_S)
        return self._pause_s

    def over(self) -> None:
        """Note a success."""
        if self._said:
            self._log.info(self._ends)
        self._said = False
        self._pause_s = 0.0
