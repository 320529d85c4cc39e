"""Reads of a whole deployment: queues, workers, events, the server itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dtq_core.clock import rfc3339
from dtq_core.keyspace import Keyspace
from dtq_core.reads.base import Read
from dtq_core.replies import to_text
from dtq_core.states import Status


class Event(msgspec.Struct, frozen=True):
    """One lifecycle event; ``cursor`` is its id in the stream."""

    cursor: str
    type: str
    id: str
    queue: str
    attempt: int
    reason: str | None
    at: str


class QueueInfo(msgspec.Struct, frozen=True):
    """One queue and its counters.

    Attributes:
        queue: its name.
        paused_since: RFC 3339; None while it is not paused.
        tasks: by status; waiting and running ones now, ended ones ever.
        absorbed: stale entries that were dropped.
        reclaimed: attempts that were lost with their worker.
        released: tasks given back, no attempt spent.
    """

    queue: str
    paused_since: str | None
    tasks: dict[Status, int]
    absorbed: int
    reclaimed: int
    released: int


class WorkerInfo(msgspec.Struct, frozen=True):
    """One worker process as its last heartbeat describes it.

    ``running_count`` is how many tasks it runs, ``running`` those of them that it tells of.
    """

    id: str
    seen_at: str
    host: str
    pid: int
    started_at: str
    queues: list[str]
    tasks: list[str]
    concurrency: int
    running_count: int
    running: list[dict[str, Any]]


class Memory(msgspec.Struct, frozen=True):
    """The memory of the server in bytes; ``limit`` is None where it has none."""

    used: int
    limit: int | None


def counters(keys: Keyspace, queue: str) -> Read[dict[str, str]]:
    """The counters of a queue, as they are stored."""

    def decode(replies: list[Any]) -> dict[str, str]:
        return {to_text(name): to_text(value) for name, value in replies[0].items()}

    return Read([("HGETALL", keys.stats(queue))], decode)


def events(keys: Keyspace, after: str, count: int = 500) -> Read[list[Event]]:
    """Events later than a cursor ("0" for the oldest kept), oldest first."""
    return Read([("XRANGE", keys.events, f"({after}", "+", "COUNT", count)], _events)


def last_events(keys: Keyspace, count: int) -> Read[list[Event]]:
    """The newest events, oldest first."""
    return Read([("XREVRANGE", keys.events, "+", "-", "COUNT", count)], lambda r: _events(r)[::-1])


def _events(replies: list[Any]) -> list[Event]:
    return [_event(to_text(entry), fields) for entry, fields in replies[0]]


def _event(entry: str, fields: dict[bytes, bytes]) -> Event:
    def get(name: str) -> str:
        return to_text(fields.get(name.encode(), b""))

    attempt = get("attempt")
    return Event(
        cursor=entry,
        type=get("type"),
        id=get("id"),
        queue=get("queue"),
        attempt=int(attempt) if attempt.isascii() and attempt.isdigit() else 0,
        reason=get("reason") or None,
        at=rfc3339(int(entry.partition("-")[0])),
    )


def queue_names(keys: Keyspace) -> Read[list[str]]:
    """The names of all queues ever used."""
    return Read([("HKEYS", keys.queues)], lambda replies: sorted(map(to_text, replies[0])))


def queues(keys: Keyspace, names: Sequence[str]) -> Read[list[QueueInfo]]:
    """The state and the counters of queues."""
    others = ("absorbed", "reclaimed", "released")

    def decode(replies: list[Any]) -> list[QueueInfo]:
        return [
            info_of(name, state, [int(value or 0) for value in values])
            for name, state, values in zip(names, replies[::2], replies[1::2], strict=True)
        ]

    def info_of(name: str, state: bytes | None, counts: list[int]) -> QueueInfo:
        tasks = dict(zip(Status, counts, strict=False))
        return QueueInfo(name, _paused_since(state), tasks, *counts[len(tasks) :])

    commands: list[Sequence[Any]] = []
    for name in names:
        commands.append(("HGET", keys.queues, name))
        commands.append(("HMGET", keys.stats(name), *Status, *others))
    return Read(commands, decode)


def _paused_since(state: bytes | None) -> str | None:
    """When a queue was paused, of its state: JSON text that the scripts make."""
    try:
        return rfc3339(msgspec.json.decode(state or b"{}", type=dict[str, int])["paused_ms"])
    except (KeyError, msgspec.MsgspecError):
        return None


def worker_ids(keys: Keyspace) -> Read[list[str]]:
    """The workers with a heartbeat that nobody has cleared away."""
    return Read([("ZRANGE", keys.workers, 0, -1)], lambda replies: [to_text(w) for w in replies[0]])


def workers(keys: Keyspace, ids: Sequence[str]) -> Read[list[WorkerInfo]]:
    """What live workers say of themselves; the dead are left out."""

    def decode(replies: list[Any]) -> list[WorkerInfo]:
        pairs = zip(ids, replies, strict=True)
        return [_worker(worker, fields) for worker, fields in pairs if fields]

    return Read([("HGETALL", keys.worker(worker)) for worker in ids], decode)


def _worker(worker: str, fields: dict[bytes, bytes]) -> WorkerInfo:
    def number(name: bytes) -> int:
        return int(fields.get(name, b"0"))

    def items(name: bytes) -> Any:
        return msgspec.json.decode(fields.get(name, b"[]"))

    return WorkerInfo(
        id=worker,
        seen_at=rfc3339(number(b"seen_ms")),
        host=to_text(fields.get(b"host", b"")),
        pid=number(b"pid"),
        started_at=rfc3339(number(b"started_ms")),
        queues=items(b"queues"),
        tasks=items(b"tasks"),
        concurrency=number(b"concurrency"),
        running_count=number(b"running_count"),
        running=items(b"running"),
    )


def now_ms() -> Read[int]:
    """The clock of the server."""
    return Read([("TIME",)], lambda replies: replies[0][0] * 1000 + replies[0][1] // 1000)


def memory() -> Read[Memory]:
    """How much memory the server uses."""

    def decode(replies: list[Any]) -> Memory:
        info = replies[0]
        return Memory(int(info["used_memory"]), int(info.get("maxmemory", 0)) or None)

    return Read([("INFO", "memory")], decode)
