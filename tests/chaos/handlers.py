"""What runs during chaos. Each handler writes down, outside dtq, when it starts and ends."""

from __future__ import annotations

import asyncio
import time

from dtq_tasks import Context, fixed, task
from support.journal import note

ATTEMPTS = 50
"""So many that only a fault of dtq could use them up."""


@task(name="chaos.quick", max_attempts=ATTEMPTS, retry=fixed(0.1))
async def quick(ctx: Context) -> int:
    note("start", ctx)
    note("end", ctx)
    return ctx.attempt


@task(name="chaos.sleep", max_attempts=ATTEMPTS, retry=fixed(0.1))
async def sleep(ctx: Context, seconds: float) -> int:
    """Sleep on the loop."""
    note("start", ctx)
    await asyncio.sleep(seconds)
    note("end", ctx)
    return ctx.attempt


@task(name="chaos.doze", max_attempts=ATTEMPTS, retry=fixed(0.1))
def doze(ctx: Context, seconds: float) -> int:
    """Sleep in a thread."""
    note("start", ctx)
    time.sleep(seconds)
    note("end", ctx)
    return ctx.attempt


@task(name="chaos.fail_once", max_attempts=ATTEMPTS, retry=fixed(0.1))
async def fail_once(ctx: Context) -> int:
    """Fail in the first attempt."""
    note("start", ctx)
    note("end", ctx)
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return ctx.attempt
