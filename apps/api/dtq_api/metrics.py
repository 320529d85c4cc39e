"""A scrape in the words of Prometheus. Pure.

Names end in their unit, counters in ``_total``. The labels are queues, names of tasks that some
worker knows, statuses and outcomes: limited sets. Beyond ``MAX_QUEUES`` queues, those in which most
tasks wait are told apart, and the rest are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from dtq_client.queries.counters import add_up
from dtq_client.queries.oldest import Waiting
from dtq_client.queries.rates import Sample
from dtq_client.queries.scraping import Scrape
from dtq_core.measures import BUCKETS_S, OTHERS, Histogram, Measures
from dtq_core.reads import QueueInfo
from dtq_core.states import WAITING

CONTENT_TYPE = CONTENT_TYPE_LATEST
MAX_QUEUES = 1_000

_BOUNDS = [*map(str, BUCKETS_S), "+Inf"]


def exposition(scrape: Scrape) -> bytes:
    """Return the text that a scrape is told in."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Told(scrape))
    return generate_latest(registry)


class _Told(Collector):
    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape

    def collect(self) -> Iterator[Metric]:
        """Return every metric."""
        scrape = self._scrape
        yield from _of_queues(limited(scrape.sample.queues), scrape)
        yield from _of_attempts(scrape.measures)
        yield from _of_crew(scrape.sample, scrape.measures)
        yield from _of_redis(scrape)


def limited(queues: Sequence[QueueInfo]) -> list[QueueInfo]:
    """Return the queues that are told apart, and one more for all others."""
    if len(queues) <= MAX_QUEUES:
        return list(queues)
    ordered = sorted(queues, key=lambda info: -sum(info.tasks[status] for status in WAITING))
    return [*ordered[:MAX_QUEUES], add_up(OTHERS, ordered[MAX_QUEUES:])]


def _of_queues(queues: Sequence[QueueInfo], scrape: Scrape) -> Iterator[Metric]:
    yield from _statuses(queues)
    yield GaugeMetricFamily("dtq_dead_letters", "Dead letters that are kept.", scrape.dead_letters)
    yield _by_queue(
        GaugeMetricFamily,
        "dtq_oldest_waiting_seconds",
        "How long the first entry that no worker has taken has been waiting; 0 where none waits.",
        {info.queue: _oldest_s(info.queue, queues, scrape.sample.oldest) for info in queues},
    )
    for name, told, counts in (
        ("absorbed", "Stale stream entries that were dropped.", [q.absorbed for q in queues]),
        ("reclaimed", "Attempts that were lost with their worker.", [q.reclaimed for q in queues]),
        ("released", "Tasks given back, no attempt spent.", [q.released for q in queues]),
    ):
        by_name = dict(zip([info.queue for info in queues], counts, strict=True))
        yield _by_queue(CounterMetricFamily, f"dtq_{name}", told, by_name)
    yield _by_queue(
        GaugeMetricFamily,
        "dtq_queue_paused",
        "1 while a queue is paused.",
        {info.queue: info.paused_since is not None for info in queues},
    )
    yield _by_queue(
        GaugeMetricFamily,
        "dtq_queue_unserved",
        "1 while tasks wait and no live worker serves them.",
        {info.queue: info.queue in scrape.unserved for info in queues},
    )


def _statuses(queues: Sequence[QueueInfo]) -> Iterator[Metric]:
    labels = ["queue", "status"]
    now = GaugeMetricFamily("dtq_tasks", "Tasks that have not ended.", labels=labels)
    ended = CounterMetricFamily("dtq_tasks_ended", "Tasks that ever ended.", labels=labels)
    for info in queues:
        for status, count in info.tasks.items():
            family = ended if status.terminal else now
            family.add_metric([info.queue, status.lower()], count)
    yield from (now, ended)


def _by_queue(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    name: str,
    told: str,
    values: Mapping[str, float],
) -> Metric:
    family = kind(name, told, labels=["queue"])
    for queue, value in values.items():
        family.add_metric([queue], value)
    return family


def _oldest_s(queue: str, queues: Sequence[QueueInfo], oldest: Mapping[str, Waiting]) -> float:
    if queue in oldest:
        return oldest[queue].seconds
    if queue != OTHERS:
        return 0.0
    apart = {info.queue for info in queues}
    return max((w.seconds for name, w in oldest.items() if name not in apart), default=0.0)


def _of_attempts(measures: Measures) -> Iterator[Metric]:
    labels = ["queue", "task"]
    ended = CounterMetricFamily("dtq_attempts", "Attempts that ended.", labels=[*labels, "outcome"])
    waited = HistogramMetricFamily(
        "dtq_start_latency_seconds", "From queued until a worker took it.", labels=labels
    )
    ran = HistogramMetricFamily("dtq_run_seconds", "How long a handler ran.", labels=labels)
    for (queue, task), attempts in measures.attempts.items():
        for outcome, count in attempts.ended.items():
            ended.add_metric([queue, task, outcome], count)
        _add(waited, [queue, task], attempts.waited)
        _add(ran, [queue, task], attempts.ran)
    yield from (ended, waited, ran)


def _add(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram) -> None:
    buckets = list(zip(_BOUNDS, map(float, histogram.cumulated), strict=True))
    family.add_metric(labels, buckets, histogram.sum_us / 1e6)


def _of_crew(sample: Sample, measures: Measures) -> Iterator[Metric]:
    workers = sample.workers
    yield GaugeMetricFamily("dtq_workers", "Live worker processes.", len(workers))
    slots = sum(worker.concurrency for worker in workers)
    yield GaugeMetricFamily("dtq_worker_slots", "Tasks that they may run at once.", slots)
    busy = sum(worker.running_count for worker in workers)
    yield GaugeMetricFamily("dtq_worker_slots_busy", "Tasks that they run.", busy)
    yield GaugeMetricFamily(
        "dtq_schedulers_leading", "Schedulers that lead a partition.", len(sample.leaders)
    )
    yield CounterMetricFamily(
        "dtq_leases_lost", "Leases lost while their handler ran.", measures.leases_lost
    )


def _of_redis(scrape: Scrape) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "dtq_redis_ping_seconds", "A round trip of this scrape.", scrape.round_trip_s
    )
    took = HistogramMetricFamily(
        "dtq_redis_call_seconds", "Round trips of workers, by script.", labels=["script"]
    )
    for script, histogram in scrape.measures.calls.items():
        _add(took, [script], histogram)
    yield took
    if scrape.scripts is not None:
        yield CounterMetricFamily(
            "dtq_redis_scripts", "Scripts that the server has run.", scrape.scripts.calls
        )
        yield CounterMetricFamily(
            "dtq_redis_script_seconds", "How long these took.", scrape.scripts.seconds
        )
    memory = scrape.sample.memory
    if memory is not None:
        yield GaugeMetricFamily("dtq_redis_memory_bytes", "Memory in use.", memory.used)
        yield GaugeMetricFamily(
            "dtq_redis_memory_limit_bytes", "The limit; 0 where there is none.", memory.limit or 0
        )
