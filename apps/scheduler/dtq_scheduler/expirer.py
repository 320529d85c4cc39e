"""The expirer: ends what has waited for longer than it may."""

from __future__ import annotations

from dtq_core.calls import Calls
from dtq_core.failpoints import reach
from dtq_core.store import AsyncStore


class Expirer:
    """Expires in one partition."""

    def __init__(self, store: AsyncStore, calls: Calls) -> None:
        """Set up with a store and the calls of the partition."""
        self._store = store
        self._calls = calls

    async def expire_due(self) -> float:
        """Expire what is due, one batch.

        Returns:
            Seconds until the next task expires: 0 where more do, infinity where none has a TTL.

        Raises:
            RedisError: if Redis cannot do it.
        """
        reach("expire.before")
        done = await self._store.run(self._calls.expire(), retry_s=0)
        reach("expire.after")
        return done.rest_s
