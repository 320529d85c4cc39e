"""The audit log of all partitions: its operations, and whether it is as it was written."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dtq_core import reads
from dtq_core.audit import AuditEntry, Chain, Head, decode_entry
from dtq_core.keyspace import Keyspace
from dtq_core.store import Store

_START = "0"
_NEWEST = "+"
_TRIES = 5
_OF_QUEUES = frozenset({"queue.pause", "queue.resume"})
"""What is done to a queue in each partition, and is done to one queue all the same."""

_Calls = dict[int, list[AuditEntry]]
"""The entries of one operation, by partition."""


class Act(msgspec.Struct, frozen=True):
    """One operation, with all its script calls in all partitions.

    Attributes:
        id: of the operation.
        at: when it began; RFC 3339, Redis time.
        action: what was done.
        who: who did it.
        reason: why.
        scope: what was asked for.
        matched: how many things that met: tasks, or queues, of which each partition tells all.
        changed: how many of them it changed.
        ids: the tasks that are gone from Redis since.
        calls: how many script calls it took.
    """

    id: str
    at: str
    action: str
    who: str
    reason: str
    scope: str
    matched: int
    changed: int
    ids: list[str]
    calls: int


class Verdict(msgspec.Struct, frozen=True):
    """Whether the log of one partition is as it was written.

    Attributes:
        prefix: of the partition.
        entries: how many were found to be so.
        trimmed: how many older ones were removed, as ``audit_maxlen`` asks.
        hash: of the last of them: whoever notes it can tell later whether these were changed.
        problem: what is wrong; None where nothing is.
    """

    prefix: str
    entries: int
    trimmed: int
    hash: str
    problem: str | None


def newest_acts(store: Store, limit: int) -> list[Act]:
    """Return the newest operations, oldest first.

    Args:
        store: where to look.
        limit: how many at most.

    Raises:
        RedisError: if the server cannot say.
    """
    by_id: dict[str, _Calls] = {}
    for keys in store.partitions.all:
        _collect(store, keys, by_id, limit)
    acts = sorted(map(_act, by_id.values()), key=lambda act: (act.at, act.id))
    return acts[-limit:]


def _collect(store: Store, keys: Keyspace, by_id: dict[str, _Calls], limit: int) -> None:
    """Read backwards for as long as a page has an entry of those operations that are wanted."""
    wanted: set[str] = set()
    for page in _pages_backwards(store, keys):
        found = False
        for entry in page:
            if len(wanted) < limit:
                wanted.add(entry.operation)
            if entry.operation in wanted:
                by_id.setdefault(entry.operation, {}).setdefault(keys.index, []).append(entry)
                found = True
        if not found:
            return


def _pages_backwards(store: Store, keys: Keyspace) -> Iterator[list[AuditEntry]]:
    cursor = _NEWEST
    while page := store.read(reads.audit_before(keys, cursor)):
        yield list(map(decode_entry, page))
        cursor = page[-1].cursor


def _act(calls: _Calls) -> Act:
    entries = [entry for partition in calls.values() for entry in partition]
    first = min(entries, key=lambda entry: (entry.at, entry.number))
    total = max if first.action in _OF_QUEUES else sum
    return Act(
        id=first.operation,
        at=first.at,
        action=first.action,
        who=first.who,
        reason=first.reason,
        scope=first.scope,
        matched=total(sum(entry.matched for entry in each) for each in calls.values()),
        changed=total(sum(entry.changed for entry in each) for each in calls.values()),
        ids=[task_id for entry in entries for task_id in entry.ids],
        calls=len(entries),
    )


def check_log(store: Store) -> list[Verdict]:
    """Walk the log of each partition from its beginning, and check that it is as it was written.

    Raises:
        RedisError: if the server cannot say.
    """
    return [_check(store, keys) for keys in store.partitions.all]


def _check(store: Store, keys: Keyspace) -> Verdict:
    """Check one log; one that was trimmed meanwhile is checked again."""
    for _ in range(_TRIES):
        head = store.read(reads.audit_head(keys))
        verdict = _walk(store, keys, head)
        if verdict.problem is None or store.read(reads.audit_head(keys)).trimmed == head.trimmed:
            break
    return verdict


def _walk(store: Store, keys: Keyspace, head: Head) -> Verdict:
    chain, problem, cursor = Chain(head), None, _START
    while problem is None and (page := store.read(reads.audit_after(keys, cursor))):
        problem = next(filter(None, map(chain.problem, page)), None)
        cursor = page[-1].cursor
    problem = problem or chain.problem_at_end()
    if problem is None and chain.number and not store.read(reads.audit_head(keys)).number:
        problem = "the head of the log is gone"
    return Verdict(keys.prefix, chain.number - head.trimmed, head.trimmed, chain.hash, problem)
