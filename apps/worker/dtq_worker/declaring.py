"""Declaring: a worker that starts stores the recurring schedules of its handlers.

The last worker that starts is right: its schedule replaces that of an older one. A handler that no
longer recurs takes its schedule away; one that an operator made is left alone.
"""

from __future__ import annotations

import structlog

from dtq_core import reads
from dtq_core.calls import Calls
from dtq_core.cron import CronSchedule, Origin, decode_schedule, encode_schedule, next_slot
from dtq_core.errors import CorruptDataError, RedisDeniedError, RedisFullError
from dtq_core.store import AsyncStore
from dtq_tasks import Registry

_log = structlog.get_logger("dtq.worker")


async def declare_schedules(store: AsyncStore, registry: Registry) -> None:
    """Store the schedules of all handlers.

    Args:
        store: of the deployment.
        registry: the handlers.

    Keys that hold something foreign, or a right that is missing, leave recurring tasks out, with a
    line in the log; all others must not suffer from that.

    Raises:
        RedisError: if the server cannot be reached.
    """
    try:
        now_ms = await store.read(reads.now_ms())
        for keys, calls in zip(store.partitions.all, store.calls, strict=True):
            names = [n for n in registry.names() if store.partitions.home_of(n) == keys.index]
            if names:
                stored = await store.read(reads.definitions(keys, names))
                for name, definition in zip(names, stored, strict=True):
                    await _declare(store, calls, registry, name, definition, now_ms)
    except (CorruptDataError, RedisDeniedError, RedisFullError) as error:
        _log.error("recurring schedules cannot be stored", error=str(error))


async def _declare(
    store: AsyncStore,
    calls: Calls,
    registry: Registry,
    name: str,
    stored: bytes | None,
    now_ms: int,
) -> None:
    task, known = registry.get(name), _decoded(stored)
    assert task is not None
    made = task.schedule
    if made is not None and (stored is None or known is None or known.origin is Origin.CODE):
        slot = next_slot(made.cron, made.tz, now_ms)
        assert slot is not None, "a schedule that never fires is refused when it is declared"
        anew = known is None or (known.cron, known.tz) != (made.cron, made.tz)
        await store.run(calls.cron_put(None, name, encode_schedule(made), slot, anew=anew))
    elif made is not None:
        _log.warning("an operator made a schedule of this name; it stays", schedule=name)
    elif stored is not None and known is not None and known.origin is Origin.CODE:
        await store.run(calls.cron_drop(None, name, stored))


def _decoded(stored: bytes | None) -> CronSchedule | None:
    try:
        return None if stored is None else decode_schedule(stored)
    except CorruptDataError:
        return None
