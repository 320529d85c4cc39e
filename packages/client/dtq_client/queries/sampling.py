"""A look at a deployment, for figures and rates: a few round trips a partition, however many wait.

The reads are not one step, so what moves between two of them may be seen in both places, or in
neither; each counter by itself is exact.
"""

from __future__ import annotations

from dtq_client.queries.counters import by_name, leader_of, live_workers, queues_of
from dtq_client.queries.oldest import oldest_by_queue
from dtq_client.queries.rates import Sample
from dtq_core import reads
from dtq_core.errors import RedisDeniedError
from dtq_core.reads import Memory
from dtq_core.store import Store


def take_sample(store: Store) -> Sample:
    """Look at a deployment.

    Raises:
        RedisError: if the server cannot say.
    """
    at_ms = store.read(reads.now_ms())
    partitions = store.partitions.all
    queues = {keys.index: queues_of(store, keys) for keys in partitions}
    names = {index: [info.queue for info in infos] for index, infos in queues.items()}
    leaders = {store.read(leader_of(keys)) for keys in partitions}
    return Sample(
        at_ms=at_ms,
        queues=by_name(info for infos in queues.values() for info in infos),
        workers=live_workers(store),
        oldest=oldest_by_queue(store, names),
        leaders=sorted(filter(None, leaders)),
        memory=_memory(store),
    )


def _memory(store: Store) -> Memory | None:
    """How much memory the server uses; None where the user lacks the right to ask."""
    try:
        return store.read(reads.memory())
    except RedisDeniedError:
        return None
