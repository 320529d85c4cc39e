"""The streams of queues that there are, and how far workers have come in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dtq_core.keyspace import GROUP, Keyspace, bands_of
from dtq_core.reads import Read
from dtq_core.store import Store


class Stream(NamedTuple):
    """The stream of one band of a queue."""

    queue: str
    band: str
    key: str


def streams_of(store: Store, keys: Keyspace, queues: Sequence[str]) -> list[Stream]:
    """Return the streams of some queues in one partition, those that exist.

    Raises:
        RedisError: if the server cannot say.
    """
    streams = [Stream(q, b, keys.stream(q, b)) for q, b in bands_of(list(queues))]
    return store.read(_existing(streams))


def _existing(streams: Sequence[Stream]) -> Read[list[Stream]]:
    def decode(replies: list[Any]) -> list[Stream]:
        return [stream for stream, there in zip(streams, replies, strict=True) if there]

    return Read([("EXISTS", stream.key) for stream in streams], decode)


def delivered(streams: Sequence[Stream]) -> Read[list[str | None]]:
    """The last entry of each stream that a worker was given; None where no worker ever came."""

    def decode(replies: list[Any]) -> list[str | None]:
        return [
            next(
                (g["last-delivered-id"].decode() for g in groups if g["name"] == GROUP.encode()),
                None,
            )
            for groups in replies
        ]

    return Read([("XINFO GROUPS", stream.key) for stream in streams], decode)
