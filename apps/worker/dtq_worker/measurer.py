"""What this worker measures, added up here and told to Redis every few seconds."""

from __future__ import annotations

import asyncio
import contextlib

from dtq_core.clock import mono_s
from dtq_core.decide import Decision, outcome_name
from dtq_core.errors import DtqError
from dtq_core.measures import UNKNOWN_TASK, Measures
from dtq_core.store import AsyncStore
from dtq_worker.held import Held
from dtq_worker.instruments import Instruments

TELL_EVERY_S = 5.0


class Measurer:
    """Takes measures on the worker's loop."""

    def __init__(self) -> None:
        """Begin with nothing measured; by now the handlers' program is set up."""
        self._measures = Measures()
        self._instruments = Instruments.found()

    def attempt(self, held: Held, decision: Decision, *, known: bool) -> None:
        """Take an attempt that has ended.

        Args:
            held: which.
            decision: what becomes of its task.
            known: whether there is a handler for it here.
        """
        claim, outcome = held.claim, outcome_name(decision)
        name = held.name if known and held.name else UNKNOWN_TASK
        attempts = self._measures.of(claim.queue, name)
        attempts.ended[outcome] = attempts.ended.get(outcome, 0) + 1
        if self._instruments is not None:
            self._instruments.attempt(claim.queue, name, outcome)
        if not held.began_s:
            return
        waited_us = max(0, claim.started_ms - claim.queued_ms) * 1000
        ran_us = int((mono_s() - held.began_s) * 1_000_000)
        attempts.waited.add(waited_us)
        attempts.ran.add(ran_us)
        if self._instruments is not None:
            self._instruments.durations(claim.queue, name, waited_us, ran_us)

    def call(self, script: str, took_s: float) -> None:
        """Take a round trip, in seconds."""
        took_us = int(took_s * 1_000_000)
        self._measures.took(script, took_us)
        if self._instruments is not None:
            self._instruments.call(script, took_us)

    def lease_lost(self) -> None:
        """Take a lease that was lost while its handler ran."""
        self._measures.leases_lost += 1
        if self._instruments is not None:
            self._instruments.lease_lost()

    async def run(self, store: AsyncStore) -> None:
        """Tell a store every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            await self.tell(store)

    async def tell(self, store: AsyncStore) -> None:
        """Tell what was measured since the last time.

        What cannot be told is dropped: whether it arrived may be unknown, and figures that are a
        little low do less harm than those that are too high.
        """
        told, self._measures = self._measures, Measures()
        with contextlib.suppress(DtqError):
            await store.add_measures(told)
