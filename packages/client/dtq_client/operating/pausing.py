"""Pausing queues: workers finish what runs, and take nothing new."""

from __future__ import annotations

from collections.abc import Sequence

from dtq_client.queries.counters import known_queues
from dtq_core.audit import operation
from dtq_core.errors import QueueNotFoundError
from dtq_core.limits import check_name
from dtq_core.store import Store


def pause(store: Store, queues: Sequence[str], who: str, reason: str = "") -> list[str]:
    """Have nothing more taken from some queues, until they are resumed.

    Args:
        store: of the deployment.
        queues: their names.
        who: who does it, for the audit log.
        reason: why, for the audit log.

    Returns:
        Those that were not paused before.

    Raises:
        InvalidNameError: for a name that breaks the rule; nothing was done.
        QueueNotFoundError: for a queue that nobody ever used; nothing was done.
        RedisError: if the server cannot do it.
    """
    return _set(store, queues, who, reason, paused=True)


def resume(store: Store, queues: Sequence[str], who: str, reason: str = "") -> list[str]:
    """Have tasks of some queues taken again.

    Arguments and errors as :func:`pause`.

    Returns:
        Those that were paused before.
    """
    return _set(store, queues, who, reason, paused=False)


def _set(store: Store, queues: Sequence[str], who: str, reason: str, *, paused: bool) -> list[str]:
    names = list(dict.fromkeys(check_name("queue name", name) for name in queues))
    known = known_queues(store)
    for name in names:
        if name not in known:
            raise QueueNotFoundError(name)
    action = "queue.pause" if paused else "queue.resume"
    act = operation(action, who, reason, " ".join(f"queue={name}" for name in names))
    answers = [store.run(calls.pause(act, names, paused=paused)) for calls in store.calls]
    return [name for name, *did in zip(names, *answers, strict=True) if any(did)]
