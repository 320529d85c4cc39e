"""Handlers for worker processes. Each writes down when it starts and ends, outside dtq."""

from __future__ import annotations

import asyncio
import os
import time

from dtq_core.clock import mono_s
from dtq_tasks import Context, default_registry, task
from support.journal import note


@task(retry=[0.05])
async def nap(seconds: float, ctx: Context) -> int:
    """Sleep on the loop."""
    note("start", ctx)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled", ctx)
        raise
    note("end", ctx)
    return os.getpid()


@task(retry=[0.05])
def doze(seconds: float, ctx: Context) -> int:
    """Sleep in a thread, deaf to everything."""
    note("start", ctx)
    time.sleep(seconds)
    note("end", ctx)
    return os.getpid()


@task(retry=[0.05])
async def block(seconds: float, ctx: Context) -> int:
    """Block the loop."""
    note("start", ctx)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    note("end", ctx)
    return os.getpid()


@task(retry=[0.05])
async def stubborn(seconds: float, ctx: Context) -> None:
    """Sleep on the loop, and swallow every interruption."""
    note("start", ctx)
    end = mono_s() + seconds
    while mono_s() < end:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            note("cancelled", ctx)
    note("end", ctx)


@task(retry=[0.05])
async def fall(code: int, ctx: Context) -> None:
    """End the whole process."""
    note("start", ctx)
    os._exit(code)


@task
def listen(ctx: Context) -> str:
    """Read standard input, which is empty."""
    note("start", ctx)
    return os.read(0, 10).decode()


REGISTRY = default_registry
