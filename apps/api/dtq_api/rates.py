"""A limit on how often each caller may ask, in this process: a token bucket each."""

from __future__ import annotations

import math
from collections import OrderedDict

from dtq_core.clock import mono_s

_MOST_CALLERS = 10_000


class Rates:
    """Lets each caller make so many requests a second, and as many at once after a rest."""

    def __init__(self, per_second: float) -> None:
        """Take the limit; 0 is none."""
        self._per_second = per_second
        self._burst = max(1.0, per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> int:
        """Count a request.

        Returns:
            0 if it may go on; else in how many seconds another one may.
        """
        if not self._per_second:
            return 0
        now_s = mono_s()
        left, at_s = self._buckets.pop(caller, (self._burst, now_s))
        left = min(self._burst, left + (now_s - at_s) * self._per_second)
        allowed = left >= 1
        self._buckets[caller] = (left - allowed, now_s)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return 0 if allowed else math.ceil((1 - left) / self._per_second)
