"""The sweeper: clears away workers that are gone."""

from __future__ import annotations

from dtq_core import reads
from dtq_core.calls import Calls
from dtq_core.clock import mono_s
from dtq_core.failpoints import reach
from dtq_core.keyspace import Keyspace
from dtq_core.store import AsyncStore

_WORKERS_EVERY_S = 5.0


class Sweeper:
    """Sweeps one partition."""

    def __init__(self, store: AsyncStore, keys: Keyspace, calls: Calls) -> None:
        """Set up with a store, and the keys and calls of the partition."""
        self._store = store
        self._keys = keys
        self._calls = calls
        self._looked_s = 0.0

    async def clear_workers(self) -> None:
        """Abandon for each worker whose description has run out; no more often than every 5 s.

        Raises:
            RedisError: if Redis cannot do it.
        """
        if mono_s() - self._looked_s < _WORKERS_EVERY_S:
            return
        self._looked_s = mono_s()
        reach("sweep.before")
        names = await self._store.read(reads.worker_ids(self._keys))
        described = await self._store.link.pipeline(
            [("EXISTS", self._keys.worker(worker)) for worker in names]
        )
        for worker, alive in zip(names, described, strict=True):
            if not alive:  # the script looks again, in the same step in which it acts
                await self._store.abandon(worker, seen_dead=False)
