"""What runs during faults. Each handler writes down, outside dtq, when it starts and ends."""

from __future__ import annotations

import asyncio

from dtq_tasks import Context, fixed, task
from support.journal import note


@task(name="faults.nap", retry=fixed(0.1))
async def nap(ctx: Context, seconds: float = 0) -> int:
    """Sleep on the loop."""
    note("start", ctx)
    await asyncio.sleep(seconds)
    note("end", ctx)
    return ctx.attempt


@task(name="faults.fail_once", retry=fixed(0.1))
async def fail_once(ctx: Context) -> int:
    """Fail in the first attempt."""
    note("start", ctx)
    note("end", ctx)
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return ctx.attempt
