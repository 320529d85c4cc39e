"""Everything that is only looked at, as values: commands, and what their replies mean. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from dtq_core.audit import Entry, Head, decode_head, decode_page
from dtq_core.clock import rfc3339
from dtq_core.keyspace import GROUP, Keyspace
from dtq_core.record import INFO_FIELDS, Attempt, TaskInfo, decode_attempt, decode_info
from dtq_core.states import Status

T = TypeVar("T")

WAITING = frozenset({Status.SCHEDULED, Status.QUEUED, Status.RETRYING})


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """Commands of one round trip, and the decoder of their replies.

    Attributes:
        commands: what is sent.
        decode: makes the result of the replies.
        tolerant: whether a key of a wrong type is answered with None, not with an error.
    """

    commands: Sequence[Sequence[Any]]
    decode: Callable[[list[Any]], T]
    tolerant: bool = False


class TaskResult(NamedTuple):
    """A task, and the JSON text of its result where there is one."""

    info: TaskInfo | None
    result: bytes | None


class Page(NamedTuple):
    """Part of a walk over all tasks: their ids, and where to go on; 0 is the end."""

    task_ids: list[str]
    cursor: int


class Event(msgspec.Struct, frozen=True):
    """One lifecycle event; ``cursor`` is its id in the stream."""

    cursor: str
    type: str
    id: str
    queue: str
    attempt: int
    reason: str | None
    at: str


class LetterEntry(NamedTuple):
    """A dead letter as it lies in the stream."""

    entry: str
    id: str
    queue: str
    reason: str


class Letter(msgspec.Struct, frozen=True):
    """A dead letter.

    Attributes:
        id: of the task.
        task: its name; empty where its record is gone or not dtq's.
        queue: where it was.
        attempt: the one after which it was given up.
        requeues: how often it was requeued before.
        error_type: of the last attempt; empty where that ended otherwise.
        reason: why it was given up.
        at: when; RFC 3339, Redis time.
        at_ms: the same in ms.
        entry: its id in the stream.
    """

    id: str
    task: str
    queue: str
    attempt: int
    requeues: int
    error_type: str
    reason: str
    at: str
    at_ms: int
    entry: str


class QueueInfo(msgspec.Struct, frozen=True):
    """One queue and its counters.

    Waiting and running ones say how many tasks stand there now; ended ones how many ever ended so.
    """

    queue: str
    paused_since: str | None
    queued: int
    scheduled: int
    retrying: int
    running: int
    succeeded: int
    failed: int
    dead_lettered: int
    cancelled: int
    expired: int
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


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def task(keys: Keyspace, task_id: str) -> Read[TaskInfo | None]:
    """The record of a task."""
    return Read(
        [("HMGET", keys.task(task_id), *INFO_FIELDS)],
        lambda replies: decode_info(task_id, replies[0]),
    )


def task_result(keys: Keyspace, task_id: str) -> Read[TaskResult]:
    """The record and the result of a task."""
    return Read(
        [("HMGET", keys.task(task_id), *INFO_FIELDS), ("GET", keys.result(task_id))],
        lambda replies: TaskResult(decode_info(task_id, replies[0]), replies[1]),
    )


def attempts(keys: Keyspace, task_id: str) -> Read[list[Attempt] | None]:
    """The ended attempts of a task; None where there is no such task."""

    def decode(replies: list[Any]) -> list[Attempt] | None:
        texts, there = replies
        return [decode_attempt(text) for text in texts] if texts or there else None

    return Read([("LRANGE", keys.attempts(task_id), 0, -1), ("EXISTS", keys.task(task_id))], decode)


def tasks(keys: Keyspace, task_ids: Sequence[str]) -> Read[list[TaskInfo]]:
    """Several records of one partition; those that are gone are left out."""

    def decode(replies: list[Any]) -> list[TaskInfo]:
        infos = map(decode_info, task_ids, replies)
        return [info for info in infos if info is not None]

    return Read([("HMGET", keys.task(task_id), *INFO_FIELDS) for task_id in task_ids], decode)


def scan(keys: Keyspace, cursor: int, count: int = 500) -> Read[Page]:
    """Part of a walk over all tasks of a partition, which never blocks the server for long."""
    skip = len(keys.task(""))
    pattern = keys.task("*").replace("{", "[{]").replace("}", "[}]")

    def decode(replies: list[Any]) -> Page:
        following, found = replies[0]
        return Page([_text(key)[skip:] for key in found], int(following))

    command = ("SCAN", cursor, "MATCH", pattern, "COUNT", count, "TYPE", "hash")
    return Read([command], decode)


def scan_all(keys: Keyspace, cursor: int, count: int = 500) -> Read[Page]:
    """Part of a walk over all keys of a partition: their names without its prefix."""
    skip = len(keys.prefix) + 1
    pattern = f"{keys.prefix}:*".replace("{", "[{]").replace("}", "[}]")

    def decode(replies: list[Any]) -> Page:
        following, found = replies[0]
        return Page([_text(key)[skip:] for key in found], int(following))

    return Read([("SCAN", cursor, "MATCH", pattern, "COUNT", count)], decode)


def stream_entries(key: str, after: str, count: int = 500) -> Read[list[tuple[str, str]]]:
    """Entries of a stream later than a cursor ("0" for the oldest), each with the task it names."""

    def decode(replies: list[Any]) -> list[tuple[str, str]]:
        return [
            (_text(entry), _text((fields or {}).get(b"id", b""))) for entry, fields in replies[0]
        ]

    return Read([("XRANGE", key, f"({after}", "+", "COUNT", count)], decode)


def entries_before(key: str, cursor: str, count: int = 500) -> Read[list[tuple[str, str]]]:
    """Entries of a stream earlier than a cursor ("+" for the newest), each with its task."""
    last = cursor if cursor == "+" else f"({cursor}"

    def decode(replies: list[Any]) -> list[tuple[str, str]]:
        return [(_text(entry), _text(fields.get(b"id", b""))) for entry, fields in replies[0]]

    return Read([("XREVRANGE", key, last, "-", "COUNT", count)], decode)


def pending_entries(key: str, after: str, count: int = 500) -> Read[list[str]]:
    """Entries of a stream that workers hold, later than a cursor ("0" for the oldest)."""
    # In bytes, so that redis-py, which expects a summary, leaves the reply as it is.
    command = (b"XPENDING", key, GROUP, f"({after}", "+", count)
    return Read([command], lambda replies: [_text(row[0]) for row in replies[0]])


def tasks_of_entries(key: str, entries: Sequence[str]) -> Read[list[str]]:
    """The tasks that entries of a stream name; entries that are gone are left out."""

    def decode(replies: list[Any]) -> list[str]:
        return [_text(fields.get(b"id", b"")) for found in replies for _, fields in found]

    return Read([("XRANGE", key, entry, entry) for entry in entries], decode)


def scan_schedule(key: str, cursor: int, count: int = 500) -> Read[Page]:
    """Part of a walk over a schedule, in no order, whatever leaves it meanwhile."""

    def decode(replies: list[Any]) -> Page:
        following, found = replies[0]
        return Page([_text(member) for member, _ in found], int(following))

    return Read([("ZSCAN", key, cursor, "COUNT", count)], decode)


def due_names(keys: Keyspace, now_ms: int, count: int) -> Read[list[tuple[str, str]]]:
    """Recurring schedules that are due, each with its slot as it is stored."""
    command = (
        *("ZRANGEBYSCORE", keys.cron_schedule, 0, now_ms),
        *("WITHSCORES", "LIMIT", 0, count),
    )
    return Read([command], lambda replies: _scored(replies[0]))


def first_slot(keys: Keyspace) -> Read[int | None]:
    """The next slot of all recurring schedules; None where none fires."""
    command = (
        *("ZRANGEBYSCORE", keys.cron_schedule, 0, "(+inf"),
        *("WITHSCORES", "LIMIT", 0, 1),
    )

    def decode(replies: list[Any]) -> int | None:
        return next((int(float(slot)) for _, slot in _scored(replies[0])), None)

    return Read([command], decode)


def _scored(flat: list[bytes]) -> list[tuple[str, str]]:
    """Members and their scores, which come one after the other."""
    return [(_text(m), _text(score)) for m, score in zip(flat[::2], flat[1::2], strict=True)]


def definitions(keys: Keyspace, names: Sequence[str]) -> Read[list[bytes | None]]:
    """The definitions of recurring schedules."""
    return Read([("HMGET", keys.cron, *names)], lambda replies: list(replies[0]))


class StoredSchedule(NamedTuple):
    """A recurring schedule as it lies in Redis.

    Attributes:
        name: of the schedule.
        definition: its definition, encoded.
        next_ms: its next slot; None where it does not fire.
        last_ms: the last slot that was fired; None where none was.
        last_id: the task of that; empty where there is none.
        paused_ms: since when it is paused; None where it is not.
    """

    name: str
    definition: bytes
    next_ms: int | None
    last_ms: int | None
    last_id: str
    paused_ms: int | None


class SchedulePage(NamedTuple):
    """Part of a walk over all recurring schedules; 0 is the end."""

    definitions: dict[str, bytes]
    cursor: int


def scan_schedules(keys: Keyspace, cursor: int, count: int = 500) -> Read[SchedulePage]:
    """Part of a walk over all recurring schedules."""

    def decode(replies: list[Any]) -> SchedulePage:
        following, found = replies[0]
        return SchedulePage({_text(k): v for k, v in found.items()}, int(following))

    return Read([("HSCAN", keys.cron, cursor, "COUNT", count)], decode)


def schedules(keys: Keyspace, found: dict[str, bytes]) -> Read[list[StoredSchedule]]:
    """What happened to recurring schedules, and when they fire next."""

    def decode(replies: list[Any]) -> list[StoredSchedule]:
        rows = zip(found.items(), replies[::2], replies[1::2], strict=True)
        return [
            StoredSchedule(
                name,
                definition,
                None if score is None else int(float(score)),
                _ms(last),
                _text(last_id or b""),
                _ms(paused),
            )
            for (name, definition), score, (last, last_id, paused) in rows
        ]

    commands: list[Sequence[Any]] = []
    for name in found:
        commands.append(("ZSCORE", keys.cron_schedule, name))
        fields = (f"{name}:{what}" for what in ("slot", "task", "paused"))
        commands.append(("HMGET", keys.cron_state, *fields))
    return Read(commands, decode)


def _ms(value: bytes | None) -> int | None:
    return int(value) if value and value.isdigit() else None


def letter_entries(keys: Keyspace, after: str, count: int = 200) -> Read[list[LetterEntry]]:
    """Dead letters later than a cursor ("0" for the oldest), oldest first."""

    def decode(replies: list[Any]) -> list[LetterEntry]:
        return [
            LetterEntry(
                _text(entry),
                *(_text(fields.get(name, b"")) for name in (b"id", b"queue", b"reason")),
            )
            for entry, fields in replies[0]
        ]

    return Read([("XRANGE", keys.dlq, f"({after}", "+", "COUNT", count)], decode)


def letter_of(keys: Keyspace, task_id: str) -> Read[LetterEntry | None]:
    """The dead letter of a task; None where it has none."""

    def decode(replies: list[Any]) -> LetterEntry | None:
        entry, queue, reason = (_text(value or b"") for value in replies[0])
        return LetterEntry(entry, task_id, queue, reason) if entry else None

    return Read([("HMGET", keys.task(task_id), "letter_id", "queue", "error")], decode)


def payload(keys: Keyspace, task_id: str) -> Read[str]:
    """The arguments of a task, as JSON text."""
    return Read([("HGET", keys.task(task_id), "payload")], lambda r: _text(r[0] or b""))


def letters(keys: Keyspace, entries: Sequence[LetterEntry]) -> Read[list[Letter]]:
    """Dead letters with what is known of their tasks."""

    def decode(replies: list[Any]) -> list[Letter]:
        rows = zip(entries, replies[::2], replies[1::2], strict=True)
        return [_letter(entry, values, last) for entry, values, last in rows]

    commands: list[Sequence[Any]] = []
    for entry in entries:
        commands.append(("HMGET", keys.task(entry.id), *INFO_FIELDS))
        commands.append(("LRANGE", keys.attempts(entry.id), -1, -1))
    return Read(commands, decode, tolerant=True)


def _letter(
    entry: LetterEntry, values: list[bytes | None] | None, last: list[bytes] | None
) -> Letter:
    info = None if values is None else decode_info(entry.id, values)
    error = (decode_attempt(last[0]).error or {}) if last else {}
    at_ms = int(entry.entry.partition("-")[0])
    return Letter(
        id=entry.id,
        task=info.name if info else "",
        queue=info.queue if info else entry.queue,
        attempt=info.attempt if info else 0,
        requeues=info.requeues if info else 0,
        error_type=str(error.get("type", "")),
        reason=entry.reason,
        at=rfc3339(at_ms),
        at_ms=at_ms,
        entry=entry.entry,
    )


def counters(keys: Keyspace, queue: str) -> Read[dict[str, str]]:
    """The counters of a queue, as they are stored."""

    def decode(replies: list[Any]) -> dict[str, str]:
        return {_text(name): _text(value) for name, value in replies[0].items()}

    return Read([("HGETALL", keys.stats(queue))], decode)


def events(keys: Keyspace, after: str, count: int = 500) -> Read[list[Event]]:
    """Events later than a cursor ("0" for the oldest kept), oldest first."""
    return Read([("XRANGE", keys.events, f"({after}", "+", "COUNT", count)], _events)


def last_events(keys: Keyspace, count: int) -> Read[list[Event]]:
    """The newest events, oldest first."""
    return Read([("XREVRANGE", keys.events, "+", "-", "COUNT", count)], lambda r: _events(r)[::-1])


def _events(replies: list[Any]) -> list[Event]:
    return [_event(_text(entry), fields) for entry, fields in replies[0]]


def _event(entry: str, fields: dict[bytes, bytes]) -> Event:
    def get(name: str) -> str:
        return _text(fields.get(name.encode(), b""))

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
    return Read([("HKEYS", keys.queues)], lambda replies: sorted(map(_text, replies[0])))


def queues(keys: Keyspace, names: Sequence[str]) -> Read[list[QueueInfo]]:
    """The state and the counters of queues."""
    counters = [*Status, "absorbed", "reclaimed", "released"]

    def decode(replies: list[Any]) -> list[QueueInfo]:
        return [
            QueueInfo(
                queue=name,
                paused_since=_paused_since(state),
                **{
                    counter.lower(): int(value or 0)
                    for counter, value in zip(counters, values, strict=True)
                },
            )
            for name, state, values in zip(names, replies[::2], replies[1::2], strict=True)
        ]

    commands: list[Sequence[Any]] = []
    for name in names:
        commands.append(("HGET", keys.queues, name))
        commands.append(("HMGET", keys.stats(name), *counters))
    return Read(commands, decode)


def _paused_since(state: bytes | None) -> str | None:
    """When a queue was paused, of its state: JSON text that the scripts make."""
    try:
        return rfc3339(msgspec.json.decode(state or b"{}", type=dict[str, int])["paused_ms"])
    except (KeyError, msgspec.MsgspecError):
        return None


def audit_head(keys: Keyspace) -> Read[Head]:
    """What the audit log says of itself."""
    command = ("HMGET", keys.audit_head, "number", "hash", "trimmed")
    return Read([command], lambda replies: decode_head(replies[0]))


def audit_after(keys: Keyspace, cursor: str, count: int = 500) -> Read[list[Entry]]:
    """Entries of the audit log later than a cursor ("0" for the oldest), oldest first."""
    command = ("XRANGE", keys.audit, f"({cursor}", "+", "COUNT", count)
    return Read([command], lambda replies: decode_page(replies[0]))


def audit_before(keys: Keyspace, cursor: str, count: int = 500) -> Read[list[Entry]]:
    """Entries of the audit log earlier than a cursor ("+" for the newest), newest first."""
    last = cursor if cursor == "+" else f"({cursor}"
    command = ("XREVRANGE", keys.audit, last, "-", "COUNT", count)
    return Read([command], lambda replies: decode_page(replies[0]))


def worker_ids(keys: Keyspace) -> Read[list[str]]:
    """The workers with a heartbeat that nobody has cleared away."""
    return Read([("ZRANGE", keys.workers, 0, -1)], lambda replies: [_text(w) for w in replies[0]])


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
        host=_text(fields.get(b"host", b"")),
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
