"""The promoter: moves what is due from the schedules of one partition to its streams."""

from __future__ import annotations

import structlog

from dtq_core.calls import Calls
from dtq_core.failpoints import reach
from dtq_core.store import AsyncStore

_log = structlog.get_logger("dtq.promoter")

SCHEDULES = ("retry", "delay")


class Promoter:
    """Promotes in one partition."""

    def __init__(self, store: AsyncStore, calls: Calls) -> None:
        """Set up with a store and the calls of the partition."""
        self._store = store
        self._calls = calls

    async def promote_due(self) -> float:
        """Promote what is due, one batch of each schedule.

        Returns:
            Seconds until the next task is due: 0 where more are, infinity where none is scheduled.

        Raises:
            RedisError: if Redis cannot do it.
        """
        return min([await self._promote(schedule) for schedule in SCHEDULES])

    async def _promote(self, schedule: str) -> float:
        reach("promote.before")
        done = await self._store.run(self._calls.promote(schedule), retry_s=0)
        reach("promote.after")
        if done.bad:
            _log.error("tasks without a sound record were moved aside", count=done.bad)
        return done.rest_s
