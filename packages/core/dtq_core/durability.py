"""How far a submission must have got before it counts as accepted, and how the server is asked.

What confirms a call is sent right behind it, on the same connection and in the same round trip:
``WAIT`` and ``WAITAOF`` speak of what their own connection has written. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dtq_core.errors import RedisError, RedisUnfitError
from dtq_core.keyspace import Keyspace
from dtq_core.reads import Read

MARK_TTL_S = 60

_APPEND_SETTINGS = ("CONFIG", "GET", "*append*")
_SYNCED = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}


class Way(NamedTuple):
    """How one server confirms.

    Attributes:
        command: what asks for it, from the longest time it may take, ms.
        given: whether a reply to that is the confirmation.
        wanting: what is missing where it is not, for messages.
    """

    command: Callable[[int], Sequence[Any]]
    given: Callable[[Any], bool]
    wanting: str


WAIT = Way(
    lambda limit_ms: ("WAIT", 1, limit_ms),
    lambda reply: bool(reply >= 1),
    "no replica said in time that it has it",
)
WAITAOF = Way(
    lambda limit_ms: ("WAITAOF", 1, 0, limit_ms),
    lambda reply: bool(reply[0] >= 1),
    "the disk did not have it in time",
)
SYNCED_REPLY = Way(
    lambda _: _APPEND_SETTINGS,
    lambda reply: _synced(reply),
    "appendonly or appendfsync of the server was changed",
)
"""Of a server that sends no reply before what it wrote is on the disk: that it still does so."""


class Confirmation(NamedTuple):
    """What is asked behind each call, and for how long at most."""

    way: Way
    limit_ms: int

    def commands(self, keys: Keyspace) -> list[Sequence[Any]]:
        """Return what is sent behind a call on a partition.

        A call that found its task there has written nothing, and there would be nothing to wait
        for; so a mark is written behind each, and what was written before the mark is covered.
        """
        mark = ("SET", keys.mark, 1, "EX", MARK_TTL_S)
        return [mark, self.way.command(self.limit_ms)]

    def missing(self, replies: Sequence[Any]) -> str | None:
        """Return why the replies to :meth:`commands` confirm nothing; None where they do."""
        for reply in replies:
            if isinstance(reply, Exception):
                return str(reply)
        return None if self.way.given(replies[-1]) else self.way.wanting


def _synced(reply: Sequence[bytes]) -> bool:
    """Whether each write is on the disk before its reply is sent; from CONFIG GET."""
    texts = [item.decode() for item in reply]
    found = dict(zip(texts[::2], texts[1::2], strict=True))
    return all(found.get(name) == value for name, value in _SYNCED.items())


def may_wait() -> Read[None]:
    """Fails where the right to WAIT is missing, or the server is itself a replica."""
    return Read([("WAIT", 0, 0)], lambda _: None)


def replication() -> Read[dict[str, Any]]:
    """What the server says of its replicas."""
    return Read([("INFO", "replication")], lambda replies: replies[0])


def check_replicas(info: dict[str, Any]) -> None:
    """Check what INFO says of replicas.

    Raises:
        RedisUnfitError: if there is none.
    """
    if not int(info.get("connected_slaves", 0)):
        raise RedisUnfitError(
            'durability "replica" is not to be had here: no replica is connected to this Redis'
        )


def may_wait_for_disk() -> Read[None]:
    """Fails where there is no WAITAOF, no right to it, or nothing that it could wait for."""
    return Read([("WAITAOF", 1, 0, 1)], lambda _: None)


def check_waitaof(refusal: RedisError) -> None:
    """Check why WAITAOF was refused; returns where the server does not know it.

    Raises:
        RedisUnfitError: if no append-only file is written.
        RedisError: the refusal itself, if it is another one.
    """
    text = str(refusal)
    if "appendonly is disabled" in text:
        raise RedisUnfitError(
            'durability "disk" is not to be had here: this Redis writes no append-only file; '
            "set appendonly yes"
        ) from None
    if "unknown command" not in text.lower():
        raise refusal


def append_settings() -> Read[bool]:
    """Whether the server sends no reply before its disk has what was written."""
    return Read([_APPEND_SETTINGS], lambda replies: _synced(replies[0]))


def check_synced(synced: bool) -> None:
    """Check a server without WAITAOF.

    Raises:
        RedisUnfitError: if a reply says nothing of its disk.
    """
    if not synced:
        raise RedisUnfitError(
            'durability "disk" is not to be had here: this Redis has no WAITAOF (7.2 or newer '
            "has), so it needs appendonly yes, appendfsync always and no-appendfsync-on-rewrite no"
        )
