"""Declaring: a worker that starts stores the recurring schedules of its handlers.

The last worker that starts is right: its schedule replaces that of an older one. A handler that no
longer recurs takes its schedule away; one that an operator made is left alone.
"""

from __future__ import annotations

import structlog

from dtq_core import reads
from dtq_core.cron import CronSchedule, Origin, decode_schedule, encode_schedule, next_slot
from dtq_core.errors import CorruptDataError
from dtq_core.store import AsyncStore
from dtq_tasks import Registry, Task

_log = structlog.get_logger("dtq.worker")


async def declare_schedules(store: AsyncStore, registry: Registry) -> None:
    """Store the schedules of all handlers.

    Args:
        store: of the deployment.
        registry: the handlers.

    Raises:
        RedisError: if the server cannot take them.
    """
    now_ms = await store.read(reads.now_ms())
    for name in registry.names():
        task = registry.get(name)
        assert task is not None
        await _declare(store, task, now_ms)


async def _declare(store: AsyncStore, task: Task[..., object], now_ms: int) -> None:
    home = store.partitions.home_of(task.name)
    calls = store.calls[home]
    (stored,) = await store.read(reads.definitions(store.partitions.all[home], [task.name]))
    known = _decoded(stored)
    made = task.schedule
    if made is not None and (stored is None or known is None or known.origin is Origin.CODE):
        slot = next_slot(made.cron, made.tz, now_ms)
        assert slot is not None, "a schedule that never fires is refused when it is declared"
        anew = known is None or (known.cron, known.tz) != (made.cron, made.tz)
        await store.run(calls.cron_put(None, task.name, encode_schedule(made), slot, anew=anew))
    elif made is not None:
        _log.warning("an operator made a schedule of this name; it stays", schedule=task.name)
    elif stored is not None and known is not None and known.origin is Origin.CODE:
        await store.run(calls.cron_drop(None, task.name, stored))


def _decoded(stored: bytes | None) -> CronSchedule | None:
    try:
        return None if stored is None else decode_schedule(stored)
    except CorruptDataError:
        return None
