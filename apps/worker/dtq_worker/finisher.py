"""The finisher: group commit of outcomes.

One ``finish`` is in flight; all outcomes that arrive meanwhile go in the next one. While Redis is
away, full, closed to us, or holds something foreign in one of our keys, they are kept and sent
again: the same lease gets the same answer, and one that was lost in the meantime is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from dtq_core.calls import Call, Calls, Ended
from dtq_core.clock import mono_s
from dtq_core.decide import Decision, Finish, Release
from dtq_core.errors import (
    CorruptDataError,
    RedisDeniedError,
    RedisError,
    RedisFullError,
    RedisUnavailableError,
)
from dtq_core.failpoints import reach
from dtq_core.limits import MAX_BATCH_TASKS
from dtq_core.outage import Outage
from dtq_core.scripts import Code
from dtq_core.store import AsyncStore
from dtq_worker.held import Held
from dtq_worker.leases import LeaseKeeper
from dtq_worker.measurer import Measurer

_log = structlog.get_logger("dtq.finisher")

MAX_BATCH_BYTES = 4_194_304
"""Results and errors in one call beyond its first task, so that Redis never stalls on one."""

_PASSING = (RedisUnavailableError, RedisFullError, RedisDeniedError, CorruptDataError)
"""Errors that are no outcome's own fault, and that time or an operator mends."""

Item = tuple[Held, Decision]


class Finisher:
    """Sends the outcomes of one partition."""

    def __init__(
        self, store: AsyncStore, calls: Calls, leases: LeaseKeeper, measurer: Measurer
    ) -> None:
        """Set up.

        Args:
            store: to send through.
            calls: of the partition.
            leases: keeps each claim until Redis has answered.
            measurer: told of each round trip.
        """
        self._store = store
        self._calls = calls
        self._leases = leases
        self._measurer = measurer
        self._waiting: list[Item] = []
        self._in_flight = 0
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def put(self, held: Held, decision: Decision) -> None:
        """Take an outcome; it is sent with the next batch."""
        self._waiting.append((held, decision))
        self._arrived.set()
        self._empty.clear()

    @property
    def backlog(self) -> int:
        """Outcomes that Redis has not confirmed."""
        return len(self._waiting) + self._in_flight

    async def drained(self) -> None:
        """Wait until every outcome is confirmed."""
        await self._empty.wait()

    async def run(self) -> None:
        """Send batches until cancelled."""
        while True:
            await self._arrived.wait()
            batch = self._next_batch()
            del self._waiting[: len(batch)]
            self._in_flight = len(batch)
            reach("finish.before")
            await self._commit(batch)
            reach("finish.after")
            self._in_flight = 0
            if not self._waiting:
                self._arrived.clear()
                self._empty.set()

    def _next_batch(self) -> list[Item]:
        size_bytes = 0
        for index, (_, what) in enumerate(self._waiting[:MAX_BATCH_TASKS]):
            size_bytes += len(what.body) if isinstance(what, Finish) else 0
            if index and size_bytes > MAX_BATCH_BYTES:
                return self._waiting[:index]
        return self._waiting[:MAX_BATCH_TASKS]

    async def _commit(self, batch: Sequence[Item]) -> None:
        finishes = [(held, what) for held, what in batch if isinstance(what, Finish)]
        releases = [(held, what) for held, what in batch if isinstance(what, Release)]
        if finishes:
            await self._send(finishes, self._calls.finish)
        if releases:
            await self._send(releases, self._calls.release)

    async def _send(
        self,
        items: Sequence[tuple[Held, Any]],
        make: Callable[[Sequence[Any]], Call[list[Ended]]],
    ) -> None:
        try:
            answers = await self._until_answered(make([what for _, what in items]))
        except RedisError as error:
            await self._send_singly(items, make, error)
            return
        for (held, _), answer in zip(items, answers, strict=True):
            self._settle(held, answer)

    def _settle(self, held: Held, answer: Ended) -> None:
        if answer.code not in {Code.OK, Code.AGAIN}:
            _log.warning(
                "outcome refused",
                task_id=held.claim.task_id,
                answer=answer.code.name,
                status=answer.status,
            )
        if answer.code is Code.CORRUPT:
            self._leases.disown(held)
        else:
            self._leases.forget(held)

    async def _send_singly(
        self,
        items: Sequence[tuple[Held, Any]],
        make: Callable[[Sequence[Any]], Call[list[Ended]]],
        error: RedisError,
    ) -> None:
        """A batch that the server refuses whole: one bad item must not hold up the others.

        The bad one itself stays pending; the reaper takes it after the visibility timeout.
        """
        if len(items) > 1:
            for item in items:
                await self._send([item], make)
            return
        held = items[0][0]
        _log.error("outcome cannot be stored", task_id=held.claim.task_id, error=str(error))
        self._leases.disown(held)

    async def _until_answered(self, call: Call[list[Ended]]) -> list[Ended]:
        """Send until there is an answer; say once that there is none, and once that there is."""
        outage = Outage(_log, "outcomes are held", "outcomes are stored again")
        while True:
            sent_s = mono_s()
            try:
                answers = await self._store.run(call, retry_s=0)
            except _PASSING as error:
                await asyncio.sleep(outage.met(error, backlog=self.backlog))
            else:
                outage.over()
                self._measurer.call(call.script.name, mono_s() - sent_s)
                return answers
