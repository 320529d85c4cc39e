"""What workers have measured of all attempts that they ever ran."""

from __future__ import annotations

from typing import Any

from dtq_core.keyspace import Keyspace
from dtq_core.measures import Measures
from dtq_core.reads import Read
from dtq_core.replies import to_text
from dtq_core.store import Store


def measured(store: Store) -> Measures:
    """Return what all workers have told so far.

    Raises:
        RedisError: if the server cannot say.
    """
    return store.read(_stored(store.partitions.all[0]))


def _stored(keys: Keyspace) -> Read[Measures]:
    def decode(replies: list[Any]) -> Measures:
        fields = {to_text(name): to_text(value) for name, value in (replies[0] or {}).items()}
        return Measures.from_fields(fields)

    return Read([("HGETALL", keys.measures)], decode, tolerant=True)
