"""The start of a service: its server may still be starting as well."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from dtq_core.addresses import is_open
from dtq_core.errors import RedisBusyError
from dtq_core.outage import Outage
from dtq_core.settings import Settings
from dtq_core.store import AsyncStore

_log = structlog.get_logger("dtq.startup")


async def check_when_ready(
    store: AsyncStore, stopping: asyncio.Event, *, eviction_matters: bool = False
) -> bool:
    """Check a server, and wait for one that still loads; one line says so.

    Another warns of one that others may reach, and that asks for no password.

    One that cannot be reached at all is refused: its address may be wrong.

    Args:
        store: its connections.
        stopping: ends the waiting.
        eviction_matters: as :meth:`AsyncStore.check`.

    Returns:
        Whether it was ready before the stop.

    Raises:
        RedisError: if it cannot be reached, is not fit, or does not let us in.
    """
    outage = Outage(_log, "waiting for Redis", "Redis is ready")
    while not stopping.is_set():
        try:
            await store.check(eviction_matters=eviction_matters)
        except RedisBusyError as error:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(outage.met(error)):
                    await stopping.wait()
        else:
            outage.over()
            if is_open(store.url):
                _log.warning("Redis asks for no password; whoever reaches it owns the tasks")
            return True
    return False


async def found_server(settings: Settings, stopping: asyncio.Event) -> bool:
    """Refuse a server that is unfit now, rather than say so for ever. As :func:`check_when_ready`.

    Args:
        settings: of this process.
        stopping: ends the waiting.
    """
    store = AsyncStore(settings)
    try:
        return await check_when_ready(store, stopping)
    finally:
        await store.close()
