"""How tasks come into a worker's hands: one partition's claims, reclaims and adoptions.

They happen one at a time, a claim that waits for something to come among them. So whatever is
pending for this worker and not in hand, while none of them is under way, was given to it in a reply
that it never saw; ``adopt`` takes that up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from dtq_core.calls import Call, Calls, Suspects, Taken
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError
from dtq_core.failpoints import reach
from dtq_core.store import AsyncStore
from dtq_worker.bands import BandOrder
from dtq_worker.held import Held, new_held
from dtq_worker.leases import LeaseKeeper
from dtq_worker.measurer import Measurer
from dtq_worker.slots import Slots

_log = structlog.get_logger("dtq.intake")

_SAY_AGAIN_S = 10.0
"""From one line that keys or records are not dtq's to the next."""
_WOKEN = 8
"""Asked for at most by a claim that waits: as many as it reads in one step. A worker that is frozen
meanwhile holds no more than these."""


class Intake:
    """Takes tasks of one partition, and hands them to the executor."""

    def __init__(
        self,
        store: AsyncStore,
        calls: Calls,
        worker: str,
        order: BandOrder,
        slots: Slots,
        leases: LeaseKeeper,
        start: Callable[[Held], None],
        suspects: Suspects,
        on_suspects: Callable[[], None] | None,
        measurer: Measurer,
    ) -> None:
        """Set up.

        Args:
            store: to call through.
            calls: of the partition.
            worker: this worker's id.
            order: in which the bands are read.
            slots: the free places.
            leases: keeps what is taken.
            start: begins to execute a claim.
            suspects: what is done with tasks that may end their process.
            on_suspects: told that some wait.
            measurer: told of each round trip.
        """
        self._store = store
        self._calls = calls
        self._worker = worker
        self._order = order
        self._slots = slots
        self._leases = leases
        self._start = start
        self._suspects = suspects
        self._on_suspects = on_suspects
        self._measurer = measurer
        self.suspects_left = False
        self._lock = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()
        self._waits = False
        self._unsure = False
        self._reclaim_due = False
        self._adopted_s = mono_s()
        self._adopt_every_s = store.settings.visibility_timeout / 3
        self._corrupt = 0
        self._quiet_until_s = 0.0
        self._cursors: dict[tuple[str, str], bytes] = {}

    async def claim(self) -> int:
        """Claim for the free slots; what dead workers left comes first.

        Returns:
            How many more could have been taken: 0 when every slot was filled, or more may be there.

        Raises:
            RedisError: if Redis cannot answer; what it may have given is adopted later.
        """
        return await self._claim(self._store, self._slots.share)

    async def claim_once_woken(self, waiter: AsyncStore, wait: Sequence[str | float]) -> int:
        """Wait for a wake-up token, and claim in the same round trip, as :meth:`claim`.

        The slots asked for stay taken meanwhile.

        Args:
            waiter: connections that may block.
            wait: the command that waits.
        """
        self._waits = True
        try:
            return await self._claim(waiter, min(_WOKEN, self._slots.share), wait)
        finally:
            self._waits = False

    async def _claim(self, store: AsyncStore, most: int, wait: Sequence[str | float] = ()) -> int:
        await self._open.wait()
        async with self._lock:
            await self._adopt_if_due()
            if self._reclaim_due:
                await self._reclaim()
            asked = min(self._slots.free, most)
            if asked <= 0:
                return 0
            reach("claim.before")
            call = self._calls.claim(self._worker, asked, self._order.next(), wait)
            taken = await self._take(call, asked, store)
            reach("claim.after")
            if taken.overdue:
                await self._reclaim()
                return 0
            return max(0, asked - len(taken.claims))

    async def reclaim(self) -> None:
        """Take what other workers lost, for the free slots, now or as soon as there is one.

        Errors as :meth:`claim`.
        """
        await self._open.wait()
        async with self._lock:
            await self._adopt_if_due()
            await self._reclaim()

    def close(self) -> None:
        """Take nothing more. A call under way may end; what it brings is held, not started."""
        self._open.clear()

    async def quiet(self) -> None:
        """Wait until no call is under way; one that waits for a token is to be cancelled."""
        if not self._waits:
            async with self._lock:
                pass

    async def adopt_unseen(self) -> None:
        """Take up what came in a reply that was lost, to be given back. Errors as :meth:`claim`."""
        async with self._lock:
            if self._unsure:
                await self._adopt()

    async def _reclaim(self) -> None:
        """A worker that is never idle still reclaims: with no slot free it is due at the next."""
        self._reclaim_due = self._slots.free <= 0
        if self._reclaim_due:
            return
        bands = self._order.plain()
        cursors = [self._cursors.get(band, b"0-0") for band in bands]
        asked, idle_ms = self._slots.free, self._leases.reclaim_idle_ms
        call = self._calls.reclaim(self._worker, asked, idle_ms, bands, cursors, self._suspects)
        reach("reclaim.before")
        taken = await self._take(call, asked)
        reach("reclaim.after")
        self._reclaim_due = len(taken.claims) == asked  # more may be there
        self._cursors.update(zip(bands, taken.cursors, strict=True))
        self.suspects_left = taken.suspects
        if taken.suspects and self._on_suspects is not None:
            self._on_suspects()

    async def _adopt_if_due(self) -> None:
        if self._unsure or mono_s() - self._adopted_s >= self._adopt_every_s:
            await self._adopt()

    async def _adopt(self) -> None:
        known = self._leases.known_entries()
        reach("adopt.before")
        await self._take(self._calls.adopt(self._worker, known, self._order.plain()), 0)
        reach("adopt.after")
        self._waits = False
        self._unsure = False
        self._adopted_s = mono_s()

    async def _take(self, call: Call[Taken], asked: int, store: AsyncStore | None = None) -> Taken:
        """Run a call; the slots that it asks for are taken meanwhile, as partitions share them."""
        sent_s = mono_s()
        self._slots.take(asked)
        try:
            taken = await (store or self._store).run(call)
        except BaseException:  # cancelled as well: the reply is lost
            self._unsure = True
            self._slots.give(asked)
            raise
        took_s = mono_s() - sent_s
        if not call.before:  # otherwise it has waited for something to come
            self._measurer.call(call.script.name, took_s)
        self._slots.give(asked - len(taken.claims))
        if taken.corrupt:
            self._note_corrupt(taken.corrupt)
        if taken.claims:
            held = new_held(taken.claims)
            self._leases.add(held)
            for item in await self._still_ours(held, took_s):
                if self._open.is_set():
                    self._start(item)
        return taken

    def _note_corrupt(self, count: int) -> None:
        """Say that something is not ours, and how often that was met, once in a while."""
        self._corrupt += count
        if mono_s() >= self._quiet_until_s:
            _log.error("keys or records that are not dtq's were passed over", count=self._corrupt)
            self._corrupt = 0
            self._quiet_until_s = mono_s() + _SAY_AGAIN_S

    async def _still_ours(self, held: Sequence[Held], waited_s: float) -> Sequence[Held]:
        """A reply that took long (the loop was blocked) may name leases that are lost by now."""
        if waited_s < self._adopt_every_s:
            return held
        try:
            ours = await asyncio.to_thread(self._leases.verify, held)
        except RedisError:
            ours = []
        lost = {item.key for item in held} - {item.key for item in ours}
        for item in held:
            if item.key in lost:
                self._leases.forget(item)
                self._slots.give()
        return ours
