"""The claimer: keeps the free slots filled, and waits on the wake-up tokens while nothing is there.

It never blocks in XREADGROUP: that would take more than there are slots, and when interrupted
leave entries that nobody saw. A token is a hint; one that is lost costs one block time-out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from dtq_core.errors import DtqError
from dtq_core.failpoints import reach
from dtq_core.keyspace import Keyspace
from dtq_core.outage import Outage
from dtq_core.store import AsyncStore
from dtq_worker.intake import Intake
from dtq_worker.slots import Slots

_log = structlog.get_logger("dtq.claimer")

BLOCK_S = 1.0
_TOKEN_TTL_MS = 10_000


class Claimer:
    """Claims from one partition."""

    def __init__(
        self,
        waiter: AsyncStore,
        keys: Keyspace,
        queues: Sequence[str],
        intake: Intake,
        slots: Slots,
    ) -> None:
        """Set up.

        Args:
            waiter: connections that may block for ``BLOCK_S``.
            keys: of the partition.
            queues: what to serve.
            intake: takes the tasks.
            slots: the free places.
        """
        self._waiter = waiter
        self._wake_keys = [keys.wake(queue) for queue in queues]
        self._intake = intake
        self._slots = slots
        self._has_token = False

    async def run(self) -> None:
        """Claim until cancelled."""
        outage = Outage(_log, "nothing can be claimed", "tasks are claimed again")
        while True:
            try:
                await self._slots.some_free()
                if await self._intake.claim() > 0 and self._slots.free > 0:
                    await self._wait()
            except DtqError as error:
                await asyncio.sleep(outage.met(error))
            else:
                outage.over()

    async def pass_on(self) -> None:
        """Give back a token that an interrupted wait may have taken; one too many is harmless."""
        if not self._has_token:
            return
        commands: list[tuple[str | int, ...]] = []
        for key in self._wake_keys:
            commands += [("RPUSH", key, "n", "o"), ("PEXPIRE", key, _TOKEN_TTL_MS)]
        with contextlib.suppress(DtqError):
            await self._waiter.link.pipeline(commands)

    async def _wait(self) -> None:
        """Wait for a token; one for an overdue entry leads to a reclaim."""
        self._has_token = True
        token = await self._waiter.link.raw("BLPOP", *self._wake_keys, BLOCK_S)
        self._has_token = False
        reach("wake.after")
        if token is not None and token[1] == b"o":
            await self._intake.reclaim()
