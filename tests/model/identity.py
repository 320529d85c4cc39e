"""When two states are one: where they differ only in what decides nothing.

That is: absolute times, the digits of entry ids, totals of what happened, and which worker is
which. Whatever an invariant looks at is not among it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from dtq_core.states import TERMINAL, Status
from model.snapshot import Entry, Record, View, entry_order
from model.world import NOBODY, State, Worker, name_of

Identity = bytes
_STATUSES = tuple(map(str, Status))
_encode = msgspec.msgpack.Encoder().encode


def identity(state: State) -> Identity:
    """The same for states that have the same future."""
    view, memory = state.view, state.memory
    places = {entry: place for place, entry in enumerate(sorted(view.entries, key=entry_order))}
    kept = (
        [_record(record, places, memory.now_ms) for record in view.records.values()],
        [_entry(view.entries[entry], entry in memory.strays) for entry in places],
        [_left(scores, memory.now_ms) for scores in (view.retries, view.delays, view.expiry)],
        sorted(view.letters),
        (view.idempotency.get("state"), view.idempotency.get("task"), view.idempotency_passes),
        [int(view.counters.get(status, 0)) for status in _STATUSES],
        (len(view.pending), view.other_keys),
        sorted(
            _worker(view, number, worker, places) for number, worker in enumerate(memory.workers)
        ),
        (memory.accepted, memory.executions, memory.faults, memory.cancels, bool(memory.strays)),
        (memory.requeues, memory.purges),
    )
    return hashlib.blake2b(_encode(kept), digest_size=16).digest()


def _record(record: Record, places: dict[str, int], now_ms: int) -> tuple[Any, ...]:
    fields = record.fields
    if not fields:
        return ()
    expires = None if record.status in TERMINAL else fields.get("expires_ms")
    return (
        *(fields.get(name) for name in ("status", "attempt", "lease", "crashes", "releases")),
        fields.get("requeues"),
        fields.get("alone"),
        "cancel_requested" in fields,
        places.get(fields.get("entry_id", "")),
        None if expires is None else max(0, int(expires) - now_ms),
        record[1:],
    )


def _entry(entry: Entry, stray: bool) -> tuple[Any, ...]:
    holder = entry.consumer if entry.consumer in NOBODY else bool(entry.consumer)
    return entry.task_id, entry.delivered, holder, entry.old, stray


def _left(scores: dict[str, int], now_ms: int) -> dict[str, int]:
    return {task_id: max(0, score - now_ms) for task_id, score in sorted(scores.items())}


def _worker(view: View, number: int, worker: Worker, places: dict[str, int]) -> bytes:
    """Everything that a worker remembers, and that the keys say of it."""
    name = name_of(number)
    hand = [(c.task_id, c.lease, c.attempt, places.get(c.entry_id)) for c in worker.hand]
    pending = [places.get(entry) for entry, consumer in view.pending.items() if consumer == name]
    running = [
        task_id
        for task_id, record in view.records.items()
        if record.status == Status.RUNNING and record.fields["worker"] == name
    ]
    return _encode((hand, worker.said, worker.dead, pending, running))
