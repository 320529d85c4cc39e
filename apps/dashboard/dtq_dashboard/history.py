"""The last hour in figures, kept by each process that serves the dashboard.

Redis holds counters, not their past. So a loop looks at them every few seconds, and what a page
shows over time begins with the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import structlog
from starlette.concurrency import run_in_threadpool

from dtq_client.queries.measures import measured
from dtq_client.queries.rates import Figures, Sample, figures
from dtq_client.queries.sampling import take_sample
from dtq_core.errors import DtqError
from dtq_core.measures import BUCKETS_S, Histogram, Measures
from dtq_core.outage import Outage
from dtq_core.states import WAITING, Status
from dtq_core.store import Store

_log = structlog.get_logger("dtq.dashboard")

EVERY_S = 5.0
_KEPT = 720
_FAILED = (Status.FAILED, Status.DEAD_LETTERED)


class Moment(NamedTuple):
    """A deployment at one time, and since the one before.

    Attributes:
        at_ms: when, in ms of Redis time.
        ended: tasks a second.
        failed: of those, the ones that failed for good.
        waiting: tasks that wait.
        running: tasks that run.
        oldest_s: how long the first of those that wait for a worker has been waiting.
        latency_s: the 99th percentile of start latency, as workers have told it meanwhile.
    """

    at_ms: int
    ended: float
    failed: float
    waiting: int
    running: int
    oldest_s: float
    latency_s: float


class History:
    """Looks every few seconds."""

    def __init__(self, store: Store) -> None:
        """Begin without a past.

        Args:
            store: where to look.
        """
        self._store = store
        self._before: Sample | None = None
        self._newest: Sample | None = None
        self._told = Histogram()
        self._moments: deque[Moment] = deque(maxlen=_KEPT)

    @property
    def moments(self) -> Sequence[Moment]:
        """The past, oldest first."""
        return self._moments

    async def run(self) -> None:
        """Look until cancelled."""
        outage = Outage(_log, "the dashboard sees nothing", "the dashboard sees again")
        while True:
            try:
                await self.look()
            except DtqError as error:
                outage.met(error)
            else:
                outage.over()
            await asyncio.sleep(EVERY_S)

    async def now(self) -> tuple[Sample, Figures]:
        """Look, and return what is seen, with rates since an earlier look.

        Raises:
            RedisError: if the server cannot say.
        """
        sample = await run_in_threadpool(take_sample, self._store)
        return sample, figures(self._before, sample)

    async def look(self) -> None:
        """Add a moment to the past.

        Raises:
            RedisError: if the server cannot say.
        """
        sample = await run_in_threadpool(take_sample, self._store)
        waited = _waited(await run_in_threadpool(measured, self._store))
        if self._newest is not None:
            found = figures(self._newest, sample)
            if found.over_seconds is not None:
                latency_s = percentile_s(self._told, waited, 0.99)
                self._moments.append(_moment(self._newest, sample, found, latency_s))
        self._before, self._newest, self._told = self._newest or sample, sample, waited


def _waited(measures: Measures) -> Histogram:
    """The start latency of all tasks."""
    total = Histogram()
    for attempts in measures.attempts.values():
        total.sum_us += attempts.waited.sum_us
        total.counts = [a + b for a, b in zip(total.counts, attempts.waited.counts, strict=True)]
    return total


def percentile_s(before: Histogram, now: Histogram, share: float) -> float:
    """Return the bound that a share of what came between two looks does not exceed, in seconds.

    It is 0 where nothing came, and the last bound for whatever is longer than all.
    """
    came = [max(0, b - a) for a, b in zip(before.counts, now.counts, strict=True)]
    wanted, seen = share * sum(came), 0
    for bound, count in zip(BUCKETS_S, came, strict=False):
        seen += count
        if count and seen >= wanted:
            return bound
    return BUCKETS_S[-1] if seen < sum(came) else 0.0


def _moment(before: Sample, now: Sample, found: Figures, latency_s: float) -> Moment:
    failed = sum(max(0, _total(now, status) - _total(before, status)) for status in _FAILED)
    oldest = found.oldest_waiting
    return Moment(
        at_ms=now.at_ms,
        ended=found.ended_per_second or 0.0,
        failed=failed / (found.over_seconds or 1.0),
        waiting=sum(found.tasks[status] for status in WAITING),
        running=found.tasks[Status.RUNNING],
        oldest_s=oldest.seconds if oldest else 0.0,
        latency_s=latency_s,
    )


def _total(sample: Sample, status: Status) -> int:
    return sum(queue.tasks[status] for queue in sample.queues)
