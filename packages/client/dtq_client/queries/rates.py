"""From exact counters, looked at now and then, to figures and rates. Pure.

A rate is the difference of a counter between two looks, divided by the time between them on the
clock of Redis. So it costs nothing while tasks are run, and misses nothing between the looks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from dtq_client.queries.oldest import Waiting, oldest_of
from dtq_core.clock import rfc3339
from dtq_core.reads import Memory, QueueInfo, WorkerInfo
from dtq_core.states import TERMINAL, Status


class Sample(NamedTuple):
    """One look at a deployment.

    Attributes:
        at_ms: when it began, in ms of Redis time.
        queues: each queue, added up over the partitions.
        workers: the live ones.
        oldest: of each queue in which some wait for a worker, the entry that has waited longest.
        leaders: the schedulers that lead.
        memory: of the server; None where it may not be asked.
    """

    at_ms: int
    queues: Sequence[QueueInfo]
    workers: Sequence[WorkerInfo]
    oldest: Mapping[str, Waiting]
    leaders: Sequence[str]
    memory: Memory | None


class QueueFigures(msgspec.Struct, frozen=True):
    """One queue.

    Attributes:
        queue: its name.
        paused_since: since when it is paused; None where it is not.
        tasks: by status; waiting and running ones now, ended ones ever.
        ended_per_second: how many tasks ended; None where there is nothing to compare with.
    """

    queue: str
    paused_since: str | None
    tasks: dict[Status, int]
    ended_per_second: float | None


class Longest(msgspec.Struct, frozen=True):
    """The task that a worker has been running for longest.

    Attributes:
        id: of the task.
        name: of the task.
        seconds: for how long.
    """

    id: str
    name: str
    seconds: float


class WorkerFigures(msgspec.Struct, frozen=True):
    """One worker process.

    Attributes:
        id: its name.
        host: the machine.
        running: how many tasks it runs.
        concurrency: how many it may run.
        longest: the task that it has been running for longest; None where it runs none.
        beat_seconds: how long ago its last heartbeat is.
    """

    id: str
    host: str
    running: int
    concurrency: int
    longest: Longest | None
    beat_seconds: float


class Figures(msgspec.Struct, frozen=True):
    """A deployment at a moment, and how fast it works.

    Attributes:
        at: when it was looked at; RFC 3339, Redis time.
        over_seconds: the time that rates are taken over; None where there are none yet.
        ended_per_second: how many tasks ended; None where there is nothing to compare with.
        tasks: by status; waiting and running ones now, ended ones ever.
        oldest_waiting: the entry that has waited longest for a worker; None where none waits.
        leaders: the schedulers that lead.
        memory: of the server; None where it may not be asked.
        queues: each queue, by name.
        workers: the live ones, by id.
    """

    at: str
    over_seconds: float | None
    ended_per_second: float | None
    tasks: dict[Status, int]
    oldest_waiting: Waiting | None
    leaders: list[str]
    memory: Memory | None
    queues: list[QueueFigures]
    workers: list[WorkerFigures]


class Window:
    """The samples of a last span of time, the newest of which is compared with the oldest."""

    def __init__(self, span_s: float) -> None:
        """Begin without samples.

        Args:
            span_s: seconds; where samples come more seldom, each is compared with the one before.
        """
        self._span_ms = span_s * 1000
        self._samples: deque[Sample] = deque()

    def add(self, sample: Sample) -> Figures:
        """Take a sample, and return what it says."""
        samples = self._samples
        while len(samples) > 1 and sample.at_ms - samples[0].at_ms > self._span_ms:
            samples.popleft()
        before = samples[0] if samples else None
        samples.append(sample)
        return figures(before, sample)


def figures(before: Sample | None, now: Sample) -> Figures:
    """Return what a sample says, with rates since an earlier one.

    Args:
        before: the earlier one; None gives no rates.
        now: what is described.
    """
    over_s = _seconds_between(before, now)
    earlier = {queue.queue: queue for queue in before.queues} if before else {}
    queues = [_queue(earlier.get(queue.queue), queue, over_s) for queue in now.queues]
    return Figures(
        at=rfc3339(now.at_ms),
        over_seconds=over_s,
        ended_per_second=None if over_s is None else sum(q.ended_per_second or 0 for q in queues),
        tasks={status: sum(queue.tasks[status] for queue in queues) for status in Status},
        oldest_waiting=oldest_of(now.oldest),
        leaders=list(now.leaders),
        memory=now.memory,
        queues=queues,
        workers=[_worker(worker, now.at_ms) for worker in now.workers],
    )


def _seconds_between(before: Sample | None, now: Sample) -> float | None:
    """The time between two samples; None where the clock was set back, or Redis is another."""
    if before is None or now.at_ms <= before.at_ms:
        return None
    return (now.at_ms - before.at_ms) / 1000


def _queue(before: QueueInfo | None, now: QueueInfo, over_s: float | None) -> QueueFigures:
    earlier, tasks = before.tasks if before else {}, now.tasks
    return QueueFigures(
        queue=now.queue,
        paused_since=now.paused_since,
        tasks=tasks,
        ended_per_second=None if over_s is None else _ended(earlier, tasks) / over_s,
    )


def _ended(before: Mapping[Status, int], now: Mapping[Status, int]) -> int:
    """How many tasks ended; what was requeued meanwhile, or lost with a server, counts as none."""
    return sum(max(0, now[status] - before.get(status, 0)) for status in TERMINAL)


def _worker(worker: WorkerInfo, now_ms: int) -> WorkerFigures:
    return WorkerFigures(
        id=worker.id,
        host=worker.host,
        running=worker.running_count,
        concurrency=worker.concurrency,
        longest=_longest(worker, now_ms),
        beat_seconds=max(0.0, now_ms / 1000 - datetime.fromisoformat(worker.seen_at).timestamp()),
    )


def _longest(worker: WorkerInfo, now_ms: int) -> Longest | None:
    if not worker.running:
        return None
    first = min(worker.running, key=lambda task: task["since_ms"])
    return Longest(first["id"], first["name"], max(0, now_ms - first["since_ms"]) / 1000)
