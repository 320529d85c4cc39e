"""Every legal move: how it is brought about, and which keys it changes.

Each task has a TTL and an idempotency key, so that all that may belong to one is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dtq_core.record import Claim
from dtq_core.states import Status
from scripts.states import Made, dead_lettered, failed, queued, retrying, running, scheduled
from scripts.table import LONG_MS, Table

KEY = "k"
TTL_S = 3600
LATE_MS = TTL_S * 1000
Begin = Callable[[Table], Made]
Act = Callable[[Table, str, Claim | None], Any]


class Move(NamedTuple):
    """One move: from where, by which script, to where."""

    source: Status | None
    script: str
    target: Status
    begin: Begin
    act: Act
    changed: str

    def __str__(self) -> str:
        return f"{self.source}-{self.script}-{self.target}"


def _at(make: Callable[..., Made], **options: Any) -> Begin:
    return lambda table: make(table, **{"ttl": TTL_S, "idempotency_key": KEY, **options})


def _not_there(table: Table) -> Made:
    return table.store.partitions.new_id(KEY), None


def _then(begin: Begin, step: Callable[[Table, str, Claim | None], object]) -> Begin:
    def go(table: Table) -> Made:
        task_id, claim = begin(table)
        step(table, task_id, claim)
        return task_id, claim

    return go


def _turned(begin: Begin, by_ms: int) -> Begin:
    def turn(table: Table, *_: object) -> None:
        assert table.clock is not None
        table.clock.turn(by_ms)

    return _then(begin, turn)


def _late(begin: Begin) -> Begin:
    return _turned(begin, LATE_MS)


def _due(begin: Begin) -> Begin:
    return _turned(begin, LONG_MS)


def _delivered(table: Table, *_: object) -> None:
    """Hand the entry to w1 without starting its task, as an older copy of the data may show it."""
    table.redis("XGROUP", "CREATE", table.stream(), "workers", 0)
    table.redis("XREADGROUP", "GROUP", "workers", "w1", "STREAMS", table.stream(), ">")


def _given_back(table: Table, _: str, claim: Claim | None) -> None:
    assert claim is not None
    table.release(claim)


def _asked_to_stop(table: Table, task_id: str, _: Claim | None) -> None:
    table.cancel(task_id)


def _held(act: Callable[[Table, Claim], object]) -> Act:
    def do(table: Table, _: str, claim: Claim | None) -> object:
        assert claim is not None
        return act(table, claim)

    return do


def _submit(**options: Any) -> Act:
    def do(table: Table, task_id: str, _: Claim | None) -> object:
        asked = table.submission(task_id=task_id, ttl=TTL_S, idempotency_key=KEY, **options)
        return table.submit_all(asked)[0]

    return do


def _promote(schedule: str) -> Act:
    return lambda table, *_: table.promote(schedule)


def _take(table: Table, *_: object) -> object:
    return table.take()


def _adopt(table: Table, *_: object) -> object:
    return table.adopt("w1")


def _take_overdue(table: Table, *_: object) -> object:
    return table.reclaim()


def _reclaim(table: Table, *_: object) -> object:
    return table.reclaim(idle_ms=0)


def _cancel(table: Table, task_id: str, _: Claim | None) -> object:
    return table.cancel(task_id)[0]


def _expire(table: Table, *_: object) -> object:
    return table.expire()


def _stored(table: Table) -> Made:
    table.cron_put()
    return _not_there(table)


def _fire(table: Table, task_id: str, _: Claim | None) -> object:
    return table.fire(task_id, ttl=TTL_S, idempotency_key=KEY)


def _requeue(table: Table, task_id: str, _: Claim | None) -> object:
    return table.requeue(task_id)[0]


def _purge(table: Table, task_id: str, _: Claim | None) -> object:
    return table.purge(task_id)


_succeed = _held(lambda table, claim: table.succeed(claim))
_fail = _held(lambda table, claim: table.fail(claim))
_retry = _held(lambda table, claim: table.retry(claim, LONG_MS))
_release = _held(lambda table, claim: table.release(claim))
_release_later = _held(lambda table, claim: table.release(claim, LONG_MS))

_undelivered, _unseen = _at(queued), _then(_at(queued), _delivered)
_waiting, _again = _at(scheduled), _at(retrying)
_held_by_w1, _overdue = _at(running), _then(_at(running), _given_back)
_to_be_stopped = _then(_held_by_w1, _asked_to_stop)
_no_letter = _at(running, dead_letter=False)
_last = _at(running, max_attempts=1)
_dead, _failed = _at(dead_lettered), _at(failed)
_last_no_letter = _at(running, max_attempts=1, dead_letter=False)

S = Status
MOVES = [
    Move(*x)
    for x in (
        (None, "submit", S.QUEUED, _not_there, _submit(),
         "task stream wake queues stats events idem expiry"),
        (None, "submit", S.SCHEDULED, _not_there, _submit(delay=600),
         "task delay queues stats events idem expiry"),
        (S.SCHEDULED, "promote", S.QUEUED, _due(_waiting), _promote("delay"),
         "task delay stream wake stats events"),
        (S.SCHEDULED, "promote", S.EXPIRED, _late(_waiting), _promote("delay"),
         "task delay expiry idem stats events"),
        (S.RETRYING, "promote", S.QUEUED, _due(_again), _promote("retry"),
         "task retry stream wake stats events"),
        (S.RETRYING, "promote", S.EXPIRED, _late(_again), _promote("retry"),
         "task attempts retry expiry idem stats events"),
        (S.QUEUED, "claim", S.RUNNING, _undelivered, _take,
         "task stream wake stats expiry"),
        (S.QUEUED, "claim", S.EXPIRED, _late(_undelivered), _take,
         "task stream wake stats expiry idem events"),
        (S.QUEUED, "adopt", S.RUNNING, _unseen, _adopt,
         "task stats expiry"),
        (S.QUEUED, "adopt", S.EXPIRED, _late(_unseen), _adopt,
         "task stream stats expiry idem events"),
        (S.RUNNING, "adopt", S.RUNNING, _held_by_w1, _adopt,
         "task stats"),
        (S.QUEUED, "reclaim", S.RUNNING, _overdue, _take_overdue,
         "task stream wake stats expiry"),
        (S.QUEUED, "reclaim", S.EXPIRED, _late(_overdue), _take_overdue,
         "task stream wake stats expiry idem events"),
        (S.RUNNING, "reclaim", S.RUNNING, _held_by_w1, _reclaim,
         "task attempts stream stats events"),
        (S.RUNNING, "reclaim", S.DEAD_LETTERED, _last, _reclaim,
         "task attempts dlq stream stats events idem"),
        (S.RUNNING, "reclaim", S.FAILED, _last_no_letter, _reclaim,
         "task attempts stream stats events idem"),
        (S.RUNNING, "reclaim", S.CANCELLED, _to_be_stopped, _reclaim,
         "task attempts stream stats events idem"),
        (S.RUNNING, "finish", S.SUCCEEDED, _held_by_w1, _succeed,
         "task result stream stats events idem"),
        (S.RUNNING, "finish", S.RETRYING, _held_by_w1, _retry,
         "task attempts retry expiry stream stats events"),
        (S.RUNNING, "finish", S.DEAD_LETTERED, _held_by_w1, _fail,
         "task attempts dlq stream stats events idem"),
        (S.RUNNING, "finish", S.FAILED, _no_letter, _fail,
         "task attempts stream stats events idem"),
        (S.RUNNING, "finish", S.CANCELLED, _to_be_stopped, _retry,
         "task attempts stream stats events idem"),
        (S.RUNNING, "release", S.QUEUED, _held_by_w1, _release,
         "task stream wake stats expiry events"),
        (S.RUNNING, "release", S.SCHEDULED, _held_by_w1, _release_later,
         "task delay stream stats expiry events"),
        (S.RUNNING, "release", S.CANCELLED, _to_be_stopped, _release,
         "task stream stats events idem"),
        (S.SCHEDULED, "cancel", S.CANCELLED, _waiting, _cancel,
         "task delay expiry idem stats events"),
        (S.QUEUED, "cancel", S.CANCELLED, _undelivered, _cancel,
         "task stream expiry idem stats events"),
        (S.RETRYING, "cancel", S.CANCELLED, _again, _cancel,
         "task attempts retry expiry idem stats events"),
        (S.SCHEDULED, "expire", S.EXPIRED, _late(_waiting), _expire,
         "task delay expiry idem stats events"),
        (S.QUEUED, "expire", S.EXPIRED, _late(_undelivered), _expire,
         "task stream expiry idem stats events"),
        (S.RETRYING, "expire", S.EXPIRED, _late(_again), _expire,
         "task attempts retry expiry idem stats events"),
        (None, "fire", S.QUEUED, _stored, _fire,
         "task stream wake queues stats events idem expiry cron"),
        (S.DEAD_LETTERED, "requeue", S.QUEUED, _dead, _requeue,
         "task dlq stream wake stats events idem audit"),
        (S.FAILED, "requeue", S.QUEUED, _failed, _requeue,
         "task attempts stream wake stats events idem audit"),
        (S.SCHEDULED, "purge", S.CANCELLED, _waiting, _purge,
         "task delay expiry idem stats events audit"),
        (S.QUEUED, "purge", S.CANCELLED, _undelivered, _purge,
         "task stream expiry idem stats events audit"),
        (S.RETRYING, "purge", S.CANCELLED, _again, _purge,
         "task attempts retry expiry idem stats events audit"),
    )
]  # fmt: skip
