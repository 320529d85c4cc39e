"""The handlers that the benchmarks run."""

import time

from dtq import task


@task
async def noop(text: str = "") -> None:
    """Do nothing: what is measured is dtq."""


@task
async def started_at_ms() -> float:
    """Say when the handler started, in epoch milliseconds."""
    return time.time() * 1000


@task
async def started_ns() -> int:
    """Say when the handler started, on the clock that all processes of a machine share."""
    return time.monotonic_ns()
