"""Purging a queue: whatever waits in it is cancelled; what runs is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dtq_client.operating.letters import Done
from dtq_client.queries.counters import all_queues, known_queues
from dtq_client.queries.walks import entries_of, members_of
from dtq_core import reads
from dtq_core.audit import operation
from dtq_core.calls import batches
from dtq_core.errors import QueueNotFoundError
from dtq_core.keyspace import Keyspace
from dtq_core.limits import Band, check_band, check_name
from dtq_core.scripts import Code
from dtq_core.states import WAITING
from dtq_core.store import Store


def count_waiting(store: Store, queue: str, band: str | None = None) -> int:
    """Return how many tasks a purge would end now.

    Args:
        store: of the deployment.
        queue: its name.
        band: only this one; None for all. Then they have to be looked at, one by one.

    Raises:
        InputError: for a name that breaks the rule.
        QueueNotFoundError: for a queue that nobody ever used.
        RedisError: if the server cannot say.
    """
    _check(store, queue, band)
    if band is not None:
        return sum(
            1
            for keys in store.partitions.all
            for ids in _waiting(store, keys, queue, band)
            for info in store.read(reads.tasks(keys, ids))
            if info.queue == queue and info.band == band and info.status in WAITING
        )
    (info,) = (info for info in all_queues(store) if info.queue == queue)
    return sum(info.tasks[status] for status in WAITING)


def purge(
    store: Store,
    queue: str,
    who: str,
    reason: str = "",
    *,
    band: str | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Done:
    """Cancel whatever waits in a queue: queued, delayed, or to be retried.

    It goes batch by batch; what comes meanwhile may be purged or not. Interrupted, it can be
    repeated.

    Args:
        store: of the deployment.
        queue: its name.
        who: who does it, for the audit log.
        reason: why, for the audit log and for each task.
        band: only this one; None for all.
        progress: told how many were cancelled so far.

    Raises:
        InputError: for a name or reason that is refused; nothing was done.
        QueueNotFoundError: for a queue that nobody ever used.
        RedisError: if the server cannot do it; what was cancelled until then stays so.
    """
    _check(store, queue, band)
    scope = f"queue={queue}" if band is None else f"queue={queue} band={band}"
    act = operation("queue.purge", who, reason, scope)
    matched = changed = 0
    for keys, calls in zip(store.partitions.all, store.calls, strict=True):
        for ids in _waiting(store, keys, queue, band):
            answers = store.run(calls.purge(act, queue, band or "", ids))
            matched += sum(answer in {Code.OK, Code.CORRUPT} for answer in answers)
            changed += answers.count(Code.OK)
            progress(changed)
    return Done(matched, changed)


def _check(store: Store, queue: str, band: str | None) -> None:
    check_name("queue name", queue)
    if band is not None:
        check_band(band)
    if queue not in known_queues(store):
        raise QueueNotFoundError(queue)


def _waiting(store: Store, keys: Keyspace, queue: str, band: str | None) -> Iterator[Sequence[str]]:
    """Ids of tasks that may wait in a queue, in bounded lists; the script looks at each again."""
    for one in Band if band is None else [band]:
        for page in entries_of(store, keys.stream(queue, one)):
            yield [task_id for _, task_id in page]
    for schedule in (keys.delay_schedule, keys.retry_schedule):
        for members in members_of(store, schedule):
            yield from batches(members)
