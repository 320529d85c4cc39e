"""``dtq scheduler``: a scheduler without workers."""

from __future__ import annotations

import asyncio
import signal

import structlog

from dtq_cli.options import Common
from dtq_core.cancelling import cancel
from dtq_core.logs import configure
from dtq_core.settings import Settings
from dtq_core.startup import found_server
from dtq_scheduler import Scheduler

_log = structlog.get_logger("dtq.scheduler")


def scheduler(common: Common) -> None:
    """Schedule until SIGTERM or Ctrl-C.

    It moves what is due, expires what waited too long and clears away dead workers. Of any number,
    one leads at a time; the others stand by and take over. SIGTERM or Ctrl-C hands over at once. A
    server that still loads at the start is waited for.
    """
    settings = common.service_settings()
    configure(settings)
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if not await found_server(settings, stopping):
        return
    scheduling = asyncio.create_task(Scheduler(settings).run())
    stop = asyncio.create_task(stopping.wait())
    _log.info("scheduler started")
    await asyncio.wait([scheduling, stop], return_when=asyncio.FIRST_COMPLETED)
    if scheduling.done():
        scheduling.result()
    await cancel(stop, scheduling)
    _log.info("scheduler stopped")
