"""The claimer: keeps the free slots filled, and waits on the wake-up tokens while nothing is there.

It never blocks in XREADGROUP: that would take more than there are slots, and leave stale entries
in hand. A token is a hint; one that is lost costs one block time-out.

With one partition the claim is sent right behind the command that waits for the token, and an idle
worker has a task one round trip earlier. With several, the slots that each waiting claim keeps
would be missing to the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from dtq_core.calls import is_overdue
from dtq_core.errors import DtqError
from dtq_core.failpoints import reach
from dtq_core.keyspace import Keyspace
from dtq_core.outage import Outage
from dtq_core.settings import Settings
from dtq_core.store import AsyncStore
from dtq_worker.intake import Intake
from dtq_worker.slots import Slots

_log = structlog.get_logger("dtq.claimer")

_LONGEST_BLOCK_S = 1.0
_TOKEN_TTL_MS = 10_000


def block_s(settings: Settings) -> float:
    """Return how long a command may wait for a token, in seconds.

    Nothing is adopted while a claim waits. What a lost reply has brought has to be adopted before
    its lease ends, and a connection that went silent is noticed only after this and a time-out.
    """
    return min(_LONGEST_BLOCK_S, settings.visibility_timeout / 6)


class Claimer:
    """Claims from one partition."""

    def __init__(
        self,
        waiter: AsyncStore,
        keys: Keyspace,
        queues: Sequence[str],
        intake: Intake,
        slots: Slots,
        *,
        alone: bool,
    ) -> None:
        """Set up.

        Args:
            waiter: connections that may block for :func:`block_s`.
            keys: of the partition.
            queues: what to serve.
            intake: takes the tasks.
            slots: the free places.
            alone: whether no other partition's claimer shares them.
        """
        self._waiter = waiter
        self._wake_keys = [keys.wake(queue) for queue in queues]
        self._intake = intake
        self._slots = slots
        self._alone = alone
        self._block_s = block_s(waiter.settings)
        self._has_token = False

    async def run(self) -> None:
        """Claim until cancelled."""
        outage = Outage(_log, "nothing can be claimed", "tasks are claimed again")
        left = 0
        while True:
            try:
                await self._slots.some_free()
                left = await (self._wait() if left > 0 else self._intake.claim())
            except DtqError as error:
                left = 0
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

    async def _wait(self) -> int:
        """Wait for a token; one for an overdue entry leads to a reclaim.

        Returns:
            How many more could have been taken, as :meth:`Intake.claim`; 0 if it is to be seen.
        """
        wait: tuple[str | float, ...] = ("BLPOP", *self._wake_keys, self._block_s)
        left, token = 0, None
        self._has_token = True
        if self._alone:
            left = await self._intake.claim_once_woken(self._waiter, wait)
        else:
            token = await self._waiter.link.raw(*wait)
        self._has_token = False
        reach("wake.after")
        if is_overdue(token):
            await self._intake.reclaim()
        return left
