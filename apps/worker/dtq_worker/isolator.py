"""The isolator: runs suspects one at a time, in a process that runs nothing else.

A suspect is a task that was in two processes when they died, or in one with a single attempt left.
Run alone, one that is innocent succeeds, and one that ends its process ends no other task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from dtq_core.errors import DtqError
from dtq_core.outage import Outage
from dtq_worker.intake import Intake
from dtq_worker.slots import Slots

_log = structlog.get_logger("dtq.isolator")

_PAUSE_S = 0.2
_IDLE_LOOKS = 10
"""After so many looks in vain it is over."""


class Isolator:
    """Takes the place of the claimers and reapers in a process of one slot."""

    def __init__(
        self, intakes: Sequence[Intake], slots: Slots, on_done: Callable[[], None]
    ) -> None:
        """Set up.

        Args:
            intakes: one of each partition; they take suspects only.
            slots: the one place.
            on_done: told when there are no suspects any more.
        """
        self._intakes = intakes
        self._slots = slots
        self._on_done = on_done
        self._outage = Outage(_log, "suspects cannot be looked for", "suspects are found again")

    async def run(self) -> None:
        """Take suspects until cancelled."""
        idle_looks = 0
        while True:
            await self._slots.some_free()
            idle_looks = 0 if await self._look() else idle_looks + 1
            if idle_looks == _IDLE_LOOKS:
                self._on_done()
            await asyncio.sleep(0 if self._slots.free <= 0 else _PAUSE_S)

    async def _look(self) -> bool:
        """Look once through every partition; say whether there was, or may be, a suspect."""
        for intake in self._intakes:
            try:
                await intake.reclaim()
            except DtqError as error:
                await asyncio.sleep(self._outage.met(error))
                return True
            self._outage.over()
            if self._slots.free <= 0 or intake.suspects_left:
                return True
        return False
