"""The reaper: takes the tasks of workers that are gone.

Its looks are jittered, so that a fleet does not act as one.
"""

from __future__ import annotations

import asyncio
import random

import structlog

from dtq_core.errors import DtqError
from dtq_core.outage import Outage
from dtq_worker.intake import Intake

_log = structlog.get_logger("dtq.reaper")


class Reaper:
    """Looks through one partition, again and again."""

    def __init__(self, intake: Intake, interval_s: float, chance: random.Random) -> None:
        """Set up.

        Args:
            intake: takes the tasks.
            interval_s: the mean time between two looks.
            chance: where the jitter of a fifth comes from.
        """
        self._intake = intake
        self._interval_s = interval_s
        self._chance = chance

    async def run(self) -> None:
        """Reap until cancelled."""
        outage = Outage(_log, "nothing can be reclaimed", "tasks are reclaimed again")
        while True:
            try:
                await self._intake.reclaim()
            except DtqError as error:
                outage.met(error)
            else:
                outage.over()
            await asyncio.sleep(self._interval_s * self._chance.uniform(0.8, 1.2))
