"""How many tasks stand where, and who works: figures of a whole deployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dtq_client.queries.oldest import Waiting, oldest_waiting
from dtq_core import reads
from dtq_core.calls import batches
from dtq_core.keyspace import Keyspace
from dtq_core.reads import QueueInfo, Read, WorkerInfo
from dtq_core.states import WAITING, Status
from dtq_core.store import Store


class PartitionStats(msgspec.Struct, frozen=True):
    """One partition.

    Attributes:
        prefix: what its keys begin with.
        waiting: tasks that are scheduled, queued or to be retried.
        running: tasks that run.
        ended: tasks that ever ended.
        leader: the scheduler that leads it; None where none does.
    """

    prefix: str
    waiting: int
    running: int
    ended: int
    leader: str | None


class Stats(msgspec.Struct, frozen=True):
    """A deployment in figures.

    Attributes:
        tasks: by status; waiting and running ones now, ended ones ever.
        oldest_waiting: the entry that has waited longest for a worker; None where none waits.
        dead_letters: entries of the dead-letter streams.
        queues: how many there are.
        workers: how many live.
        partitions: each partition.
    """

    tasks: dict[Status, int]
    oldest_waiting: Waiting | None
    dead_letters: int
    queues: int
    workers: int
    partitions: list[PartitionStats]


def all_queues(store: Store) -> list[QueueInfo]:
    """Return the counters of each queue, added up over the partitions.

    Raises:
        RedisError: if the server cannot say.
    """
    return by_name(info for keys in store.partitions.all for info in queues_of(store, keys))


def by_name(infos: Iterable[QueueInfo]) -> list[QueueInfo]:
    """Return each queue once, what its partitions say added up."""
    found: dict[str, list[QueueInfo]] = {}
    for info in infos:
        found.setdefault(info.queue, []).append(info)
    return [add_up(name, infos) for name, infos in sorted(found.items())]


def known_queues(store: Store) -> set[str]:
    """Return the names of all queues ever used.

    Raises:
        RedisError: if the server cannot say.
    """
    return {name for keys in store.partitions.all for name in store.read(reads.queue_names(keys))}


def live_workers(store: Store) -> list[WorkerInfo]:
    """Return the live workers, by id. A worker says the same in each partition.

    Raises:
        RedisError: if the server cannot say.
    """
    keys = store.partitions.all[0]
    ids = store.read(reads.worker_ids(keys))
    found = store.read(reads.workers(keys, ids))
    return sorted(found, key=lambda worker: worker.id)


def unserved(queues: Iterable[QueueInfo], workers: Iterable[WorkerInfo]) -> frozenset[str]:
    """Return the names of queues in which tasks wait, and that no live worker serves."""
    served = {name for worker in workers for name in worker.queues}
    waiting = {info.queue for info in queues if any(info.tasks[status] for status in WAITING)}
    return frozenset(waiting - served)


def statistics(store: Store) -> Stats:
    """Return the deployment in figures.

    Raises:
        RedisError: if the server cannot say.
    """
    queues = {keys.index: queues_of(store, keys) for keys in store.partitions.all}
    everything = add_up("", [info for infos in queues.values() for info in infos])
    return Stats(
        tasks=everything.tasks,
        oldest_waiting=oldest_waiting(
            store, {index: [info.queue for info in infos] for index, infos in queues.items()}
        ),
        dead_letters=dead_letters(store),
        queues=len({info.queue for infos in queues.values() for info in infos}),
        workers=len(live_workers(store)),
        partitions=[
            _partition(keys, queues[keys.index], store.read(leader_of(keys)))
            for keys in store.partitions.all
        ],
    )


def dead_letters(store: Store) -> int:
    """Return how many entries the dead-letter streams have. Errors as above."""
    return sum(store.read(_dead_letters(keys)) for keys in store.partitions.all)


def queues_of(store: Store, keys: Keyspace) -> list[QueueInfo]:
    """Return the counters of each queue in one partition. Errors as above."""
    names = store.read(reads.queue_names(keys))
    return [info for batch in batches(names) for info in store.read(reads.queues(keys, batch))]


def add_up(name: str, infos: Sequence[QueueInfo]) -> QueueInfo:
    """Return what some queues count together, paused since the first of them was."""
    paused = [info.paused_since for info in infos if info.paused_since is not None]
    return QueueInfo(
        name,
        min(paused, default=None),
        {status: sum(info.tasks[status] for info in infos) for status in Status},
        absorbed=sum(info.absorbed for info in infos),
        reclaimed=sum(info.reclaimed for info in infos),
        released=sum(info.released for info in infos),
    )


def _partition(keys: Keyspace, queues: Sequence[QueueInfo], leader: str | None) -> PartitionStats:
    added = add_up("", queues)
    counts = added.tasks
    return PartitionStats(
        prefix=keys.prefix,
        waiting=sum(counts[status] for status in WAITING),
        running=counts[Status.RUNNING],
        ended=sum(count for status, count in counts.items() if status.terminal),
        leader=leader,
    )


def leader_of(keys: Keyspace) -> Read[str | None]:
    """Who leads a partition: the first word of the lease, the second being its term."""
    return Read(
        [("GET", keys.leader)],
        lambda replies: replies[0] and replies[0].decode("utf-8", "replace").partition(" ")[0],
    )


def _dead_letters(keys: Keyspace) -> Read[int]:
    return Read([("XLEN", keys.dlq)], lambda replies: int(replies[0]))
