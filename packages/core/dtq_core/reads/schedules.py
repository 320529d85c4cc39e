"""Reads of recurring schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dtq_core.keyspace import Keyspace
from dtq_core.reads.base import Read
from dtq_core.replies import to_number, to_text


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
    return [(to_text(m), to_text(score)) for m, score in zip(flat[::2], flat[1::2], strict=True)]


def definitions(keys: Keyspace, names: Sequence[str]) -> Read[list[bytes | None]]:
    """The definitions of recurring schedules."""
    return Read([("HMGET", keys.cron, *names)], lambda replies: list(replies[0]))


def scan_schedules(keys: Keyspace, cursor: int, count: int = 500) -> Read[SchedulePage]:
    """Part of a walk over all recurring schedules."""

    def decode(replies: list[Any]) -> SchedulePage:
        following, found = replies[0]
        return SchedulePage({to_text(k): v for k, v in found.items()}, int(following))

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
                to_number(last),
                to_text(last_id),
                to_number(paused),
            )
            for (name, definition), score, (last, last_id, paused) in rows
        ]

    commands: list[Sequence[Any]] = []
    for name in found:
        commands.append(("ZSCORE", keys.cron_schedule, name))
        fields = (f"{name}:{what}" for what in ("slot", "task", "paused"))
        commands.append(("HMGET", keys.cron_state, *fields))
    return Read(commands, decode)
