"""The entry that has waited longest for a worker: exact, and cheap however many wait.

The entries of a stream are in the order of time. Those that no worker holds are the ones behind
the last that was delivered, and the ones that were given back, which a consumer of their own
keeps. So the first of each, of every stream, are all that has to be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dtq_client.queries.streams import Stream, delivered, streams_of
from dtq_core import reads
from dtq_core.clock import rfc3339
from dtq_core.keyspace import GROUP, OVERDUE, Keyspace
from dtq_core.reads import Read
from dtq_core.store import Store


class Waiting(msgspec.Struct, frozen=True):
    """An entry that waits for a worker.

    Attributes:
        queue: the queue it waits in.
        band: its priority there.
        since: when it was queued; RFC 3339, Redis time.
        seconds: for how long.
    """

    queue: str
    band: str
    since: str
    seconds: float


def oldest_waiting(store: Store, queues: Mapping[int, Sequence[str]]) -> Waiting | None:
    """Return the entry that has waited longest; None where none waits.

    Args:
        store: where to look.
        queues: the names of the queues, by the index of their partition.

    Raises:
        RedisError: if the server cannot say.
    """
    return oldest_of(oldest_by_queue(store, queues))


def oldest_of(waiting: Mapping[str, Waiting]) -> Waiting | None:
    """Return the one that has waited longest; None where none waits."""
    return min(waiting.values(), key=lambda entry: entry.since, default=None)


def oldest_by_queue(store: Store, queues: Mapping[int, Sequence[str]]) -> dict[str, Waiting]:
    """Return of each queue the entry that has waited longest, where one waits.

    Arguments and errors as :func:`oldest_waiting`.
    """
    now_ms = store.read(reads.now_ms())
    first = [
        entry
        for keys in store.partitions.all
        for entry in _first_of_each(store, keys, queues[keys.index])
    ]
    return {
        stream.queue: Waiting(
            stream.queue, stream.band, rfc3339(queued_ms), (now_ms - queued_ms) / 1000
        )
        for queued_ms, stream in sorted(first, reverse=True)  # the oldest of a queue comes last
    }


def _first_of_each(store: Store, keys: Keyspace, queues: Sequence[str]) -> list[tuple[int, Stream]]:
    streams = streams_of(store, keys, queues)
    last_delivered = store.read(delivered(streams))
    return store.read(_first_waiting(streams, last_delivered))


def _first_waiting(
    streams: Sequence[Stream], last_delivered: Sequence[str | None]
) -> Read[list[tuple[int, Stream]]]:
    commands: list[tuple[Any, ...]] = []
    asked: list[Stream] = []
    for stream, last in zip(streams, last_delivered, strict=True):
        commands.append(("XRANGE", stream.key, f"({last}" if last else "-", "+", "COUNT", 1))
        asked.append(stream)
        if last is not None:
            # In bytes, so that redis-py, which expects a summary, leaves the reply as it is.
            commands.append((b"XPENDING", stream.key, GROUP, "-", "+", 1, OVERDUE))
            asked.append(stream)

    def decode(replies: list[Any]) -> list[tuple[int, Stream]]:
        pairs = zip(asked, replies, strict=True)
        return [(int(reply[0][0].partition(b"-")[0]), stream) for stream, reply in pairs if reply]

    return Read(commands, decode)
