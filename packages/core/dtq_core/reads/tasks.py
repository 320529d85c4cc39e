"""Reads of tasks: records, results, attempts; and walks over all keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dtq_core.keyspace import Keyspace
from dtq_core.reads.base import Page, Read
from dtq_core.record import (
    INFO_FIELDS,
    SUCCESS_FIELDS,
    Attempt,
    Payload,
    TaskInfo,
    decode_attempt,
    decode_info,
    decode_payload,
    decode_success,
)
from dtq_core.replies import to_text


class Outcome(NamedTuple):
    """A task, and the JSON text of its result where there is one."""

    info: TaskInfo
    result: bytes | None


def task(keys: Keyspace, task_id: str) -> Read[TaskInfo | None]:
    """The record of a task."""
    return Read(
        [("HMGET", keys.task(task_id), *INFO_FIELDS)],
        lambda replies: decode_info(task_id, replies[0]),
    )


def outcome(keys: Keyspace, task_id: str) -> Read[Outcome | None]:
    """The record and the result of a task; None where there is no such task."""

    def decode(replies: list[Any]) -> Outcome | None:
        info = decode_info(task_id, replies[0])
        return None if info is None else Outcome(info, replies[1])

    return Read(
        [("HMGET", keys.task(task_id), *INFO_FIELDS), ("GET", keys.result(task_id))], decode
    )


def attempts(keys: Keyspace, task_id: str) -> Read[list[Attempt] | None]:
    """The ended attempts of a task; None where there is no such task."""

    def decode(replies: list[Any]) -> list[Attempt] | None:
        texts, record = replies
        if not texts and all(value is None for value in record):
            return None
        ended = [decode_attempt(text) for text in texts]
        success = decode_success(record)
        return ended if success is None else [*ended, success]

    commands = [
        ("LRANGE", keys.attempts(task_id), 0, -1),
        ("HMGET", keys.task(task_id), *SUCCESS_FIELDS),
    ]
    return Read(commands, decode)


def tasks(keys: Keyspace, task_ids: Sequence[str]) -> Read[list[TaskInfo]]:
    """Several records of one partition; those that are gone are left out."""

    def decode(replies: list[Any]) -> list[TaskInfo]:
        infos = map(decode_info, task_ids, replies)
        return [info for info in infos if info is not None]

    return Read([("HMGET", keys.task(task_id), *INFO_FIELDS) for task_id in task_ids], decode)


def payload(keys: Keyspace, task_id: str) -> Read[Payload]:
    """The arguments of a task."""
    return Read([("HGET", keys.task(task_id), "payload")], lambda r: decode_payload(r[0] or b""))


def scan(keys: Keyspace, cursor: int, count: int = 500) -> Read[Page]:
    """Part of a walk over all tasks of a partition, which never blocks the server for long."""
    skip = len(keys.task(""))
    pattern = keys.task("*").replace("{", "[{]").replace("}", "[}]")

    def decode(replies: list[Any]) -> Page:
        following, found = replies[0]
        return Page([to_text(key)[skip:] for key in found], int(following))

    command = ("SCAN", cursor, "MATCH", pattern, "COUNT", count, "TYPE", "hash")
    return Read([command], decode)


def scan_all(keys: Keyspace, cursor: int, count: int = 500) -> Read[Page]:
    """Part of a walk over all keys of a partition: their names without its prefix."""
    skip = len(keys.prefix) + 1
    pattern = f"{keys.prefix}:*".replace("{", "[{]").replace("}", "[}]")

    def decode(replies: list[Any]) -> Page:
        following, found = replies[0]
        return Page([to_text(key)[skip:] for key in found], int(following))

    return Read([("SCAN", cursor, "MATCH", pattern, "COUNT", count)], decode)
