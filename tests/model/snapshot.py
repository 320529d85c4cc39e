"""The keys of one partition: kept as a whole, put back as a whole, and looked at.

Entry ids, and how long entries are pending, are kept by DUMP and RESTORE.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtq_core.keyspace import Keyspace
from dtq_core.scripts import Script
from model.pipe import Pipe

QUEUE, BAND = "q", "normal"
KEYS = Keyspace("m")
VISIBILITY_MS = 86_400_000
"""Longer than any walk: an entry is old only where a step made it so."""

_RESTORE_LUA = """
redis.call('FLUSHDB', 'SYNC')
local saved = cmsgpack.unpack(ARGV[1])
for i = 1, #saved do redis.call('RESTORE', saved[i][1], saved[i][3], saved[i][2]) end
"""
EMPTY = b"\x90"
_decode = msgspec.msgpack.Decoder().decode


def _script(name: str, text: str) -> Script:
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_RESTORE = _script("restore", _RESTORE_LUA)
_VIEW = _script("view", (Path(__file__).parent / "view.lua").read_text("utf-8"))


class Record(NamedTuple):
    """What is kept of one task."""

    fields: dict[str, str]
    attempts: int
    has_result: bool
    passes: bool
    attempts_pass: bool

    @property
    def status(self) -> str:
        return self.fields.get("status", "")

    def number(self, name: str) -> int:
        return int(self.fields.get(name, 0))


NO_RECORD = Record({}, 0, has_result=False, passes=False, attempts_pass=False)


class Entry(NamedTuple):
    """An entry of the stream; the consumer is empty where it was delivered to none."""

    task_id: str
    delivered: bool
    consumer: str = ""
    old: bool = False


class View(NamedTuple):
    """What the keys hold."""

    records: dict[str, Record]
    entries: dict[str, Entry]
    pending: dict[str, str]
    retries: dict[str, int]
    delays: dict[str, int]
    expiry: dict[str, int]
    letters: list[str]
    idempotency: dict[str, str]
    idempotency_passes: bool
    counters: dict[str, str]
    other_keys: int


def restore(pipe: Pipe, saved: bytes) -> tuple[Any, ...]:
    """The command that makes the keys what they were."""
    return pipe.script(_RESTORE, KEYS.prefix, [saved])


def look(pipe: Pipe, key: str, task_ids: Sequence[str]) -> tuple[Any, ...]:
    """The command that saves the keys and looks at them."""
    return pipe.script(_VIEW, KEYS.prefix, [key, *task_ids])


def entry_order(entry: str) -> tuple[int, int]:
    first, _, second = entry.partition("-")
    return int(first), int(second or 0)


def _pairs(flat: list[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _scores(flat: list[str]) -> dict[str, int]:
    return {name: int(score) for name, score in _pairs(flat).items()}


def read(packed: bytes, task_ids: Sequence[str]) -> View:
    """Read what :func:`look` answered."""
    (
        records,
        entries,
        last,
        pending,
        retries,
        delays,
        expiry,
        dlq,
        idem,
        idem_ttl,
        counters,
        more,
    ) = _decode(packed)
    held = {entry: (consumer, idle) for entry, consumer, idle, _ in pending}
    return View(
        {
            task_id: Record(_pairs(flat), attempts, bool(result), ttl >= 0, attempts_ttl >= 0)
            for task_id, (flat, attempts, result, ttl, attempts_ttl) in zip(
                task_ids, records, strict=True
            )
        },
        {entry: _entry(fields[1], entry, last, held) for entry, fields in entries},
        {entry: consumer for entry, (consumer, _) in held.items()},
        _scores(retries),
        _scores(delays),
        _scores(expiry),
        [fields[1] for _, fields in dlq],
        _pairs(idem),
        idem_ttl >= 0,
        _pairs(counters),
        more,
    )


def _entry(task_id: str, entry: str, last: str, held: dict[str, tuple[str, int]]) -> Entry:
    delivered = bool(last) and entry_order(entry) <= entry_order(last)
    consumer, idle_ms = held.get(entry, ("", 0))
    return Entry(task_id, delivered, consumer, idle_ms >= VISIBILITY_MS)
