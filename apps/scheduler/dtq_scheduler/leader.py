"""The leader lease of one partition: who promotes and sweeps there now.

A leader trusts its lease only for as long as it lasts, counted from before it asked, on a clock
that never jumps. Two leaders at once (one was frozen) harm nothing: every script they call checks
for itself.
"""

from __future__ import annotations

from dtq_core.calls import Calls
from dtq_core.clock import mono_s
from dtq_core.failpoints import reach
from dtq_core.store import AsyncStore

_RENEWALS = 3
"""Renewals within one lease."""


class Leader:
    """Takes and keeps the lease, or waits for it."""

    def __init__(self, store: AsyncStore, calls: Calls, name: str, lease_s: float) -> None:
        """Set up.

        Args:
            store: to call through.
            calls: of the partition.
            name: who asks; unique.
            lease_s: how long a lease lasts.
        """
        self._store = store
        self._calls = calls
        self._name = name
        self._lease_s = lease_s
        self._trusted_until_s = 0.0
        self._ask_at_s = 0.0
        self.term = 0

    async def leads(self) -> bool:
        """Tell whether this one leads now; asks Redis no more often than a renewal is due.

        Raises:
            RedisError: if Redis cannot say.
        """
        now = mono_s()
        if now >= self._ask_at_s:
            reach("lead.before")
            answer = await self._store.run(
                self._calls.lead(self._name, int(self._lease_s * 1000)), retry_s=0
            )
            reach("lead.after")
            self._ask_at_s = now + self._lease_s / _RENEWALS
            self._trusted_until_s = now + self._lease_s if answer.leads else 0.0
            if answer.leads:
                self.term = answer.term
            elif answer.left_ms > 0:
                self._ask_at_s = min(self._ask_at_s, now + answer.left_ms / 1000)
        return self.trusted

    @property
    def trusted(self) -> bool:
        """Whether it leads as far as it knows, without asking."""
        return mono_s() < self._trusted_until_s

    @property
    def asks_in_s(self) -> float:
        """Seconds until it is to ask again, to keep the lease or to take it."""
        return max(0.0, self._ask_at_s - mono_s())

    async def resign(self) -> None:
        """Give the lease up, so that another need not wait for its end; harmless without one.

        Raises:
            RedisError: if Redis cannot be told; the lease then ends by itself.
        """
        self._trusted_until_s = 0.0
        reach("resign.before")
        await self._store.run(self._calls.lead(self._name, 0), retry_s=0)
