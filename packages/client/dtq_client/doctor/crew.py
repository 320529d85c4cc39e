"""Who works: workers for every queue, a scheduler, and what dead workers left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dtq_client.doctor.finding import Finding, Verdict
from dtq_client.queries.counters import all_queues, leader_of, live_workers, unserved
from dtq_client.queries.streams import delivered, streams_of
from dtq_core import reads
from dtq_core.keyspace import GROUP, OVERDUE, SUSPECTS, Keyspace
from dtq_core.reads import QueueInfo, Read, WorkerInfo
from dtq_core.replies import to_text
from dtq_core.states import WAITING, Status
from dtq_core.store import Store

_NAMED = 3
_HELD = frozenset({OVERDUE, SUSPECTS})


class Consumer(NamedTuple):
    """A consumer of a stream: a worker, or what is left of one.

    Attributes:
        name: the id of the worker.
        pending: how many entries it holds.
        idle_ms: how long ago it last took, renewed or gave back one.
    """

    name: str
    pending: int
    idle_ms: int


def examine_crew(store: Store) -> Iterator[Finding]:
    """Examine who works.

    Raises:
        RedisError: if the server cannot say.
    """
    queues, workers = all_queues(store), live_workers(store)
    yield _workers(queues, workers)
    yield _scheduler(store, queues)
    alive = {worker.id for worker in workers}
    yield _consumers(_dead(store, alive), store.settings.visibility_timeout, alive=bool(alive))


def _workers(queues: Sequence[QueueInfo], workers: Sequence[WorkerInfo]) -> Finding:
    lonely = unserved(queues, workers)
    says = f"{len(workers)} alive"
    if lonely:
        waiting = sum(sum(q.tasks[s] for s in WAITING) for q in queues if q.queue in lonely)
        says += f"; nobody serves {_some(sorted(lonely))}, where {waiting:,} wait"
    verdict = Verdict.OK if workers else Verdict.WARNING
    queue = min(lonely, default="QUEUE")
    return Finding(
        "workers",
        Verdict.DANGER if lonely else verdict,
        says,
        "A task waits until a worker that serves its queue is there.",
        None if workers and not lonely else f"dtq worker MODULE --queue {queue}",
    )


def _scheduler(store: Store, queues: Sequence[QueueInfo]) -> Finding:
    led = [store.read(leader_of(keys)) for keys in store.partitions.all]
    later = sum(q.tasks[Status.SCHEDULED] + q.tasks[Status.RETRYING] for q in queues)
    leaderless = led.count(None)
    verdict = Verdict.OK
    if leaderless:
        verdict = Verdict.DANGER if later else Verdict.WARNING
    says = f"led by {_some(sorted({leader for leader in led if leader}))}"
    if leaderless:
        says = (
            f"{leaderless} of {len(led)} partitions have none; {later:,} tasks wait for their time"
        )
    return Finding(
        "scheduler",
        verdict,
        says,
        "Without one, delayed tasks, retries, TTLs and recurring schedules stand still.",
        "dtq scheduler" if leaderless else None,
    )


def _consumers(dead: Sequence[Consumer], visibility_timeout: float, *, alive: bool) -> Finding:
    why = "What a dead worker held is taken by a living one after the visibility timeout."
    left = [consumer for consumer in dead if consumer.pending]
    if not left:
        says = "nothing is left of dead workers" if not dead else f"{len(dead)} empty ones are left"
        return Finding("consumers", Verdict.OK, says, why)
    overdue = [one for one in left if one.idle_ms > 2000 * visibility_timeout]
    says = f"{_some([one.name for one in left])} died with {sum(c.pending for c in left):,} entries"
    if not overdue and alive:
        return Finding("consumers", Verdict.OK, f"{says}; they are due soon", why)
    verdict = Verdict.WARNING if alive else Verdict.DANGER
    remedy = "Serve their queues: dtq worker MODULE. Then: dtq verify --repair"
    return Finding("consumers", verdict, f"{says}; nobody has taken them", why, remedy)


def _dead(store: Store, alive: set[str]) -> list[Consumer]:
    found: dict[str, Consumer] = {}
    for keys in store.partitions.all:
        for consumer in _consumers_in(store, keys):
            if consumer.name not in alive and consumer.name not in _HELD:
                before = found.get(consumer.name, Consumer(consumer.name, 0, 0))
                found[consumer.name] = Consumer(
                    consumer.name,
                    before.pending + consumer.pending,
                    max(before.idle_ms, consumer.idle_ms if consumer.pending else 0),
                )
    return list(found.values())


def _consumers_in(store: Store, keys: Keyspace) -> list[Consumer]:
    queues = store.read(reads.queue_names(keys))
    streams = streams_of(store, keys, queues)
    last_delivered = store.read(delivered(streams))  # None where there is no group
    pairs = zip(streams, last_delivered, strict=True)
    return store.read(_consumers_of([stream.key for stream, last in pairs if last is not None]))


def _consumers_of(streams: Sequence[str]) -> Read[list[Consumer]]:
    def decode(replies: list[Any]) -> list[Consumer]:
        return [
            Consumer(to_text(one["name"]), int(one["pending"]), int(one["idle"]))
            for consumers in replies
            for one in consumers
        ]

    return Read([("XINFO CONSUMERS", stream, GROUP) for stream in streams], decode)


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    text = ", ".join(names[:_NAMED])
    return f"{text} and {len(names) - _NAMED} more" if len(names) > _NAMED else text
