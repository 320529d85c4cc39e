"""The start of a service: its server may come up later than it does."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from dtq_core.errors import RedisUnavailableError
from dtq_core.outage import Outage
from dtq_core.store import AsyncStore

_log = structlog.get_logger("dtq.startup")


async def check_when_there(
    store: AsyncStore, stopping: asyncio.Event, *, eviction_matters: bool = False
) -> bool:
    """Check a server, and wait for one that is away or still loads; one line says so.

    Args:
        store: its connections.
        stopping: ends the waiting.
        eviction_matters: as :meth:`AsyncStore.check`.

    Returns:
        Whether it was there before the stop.

    Raises:
        RedisError: if it is there, but not fit, or does not let us in.
    """
    outage = Outage(_log, "waiting for Redis", "Redis is there")
    while not stopping.is_set():
        try:
            await store.check(eviction_matters=eviction_matters)
        except RedisUnavailableError as error:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(outage.met(error)):
                    await stopping.wait()
        else:
            outage.over()
            return True
    return False
