"""The handlers that the benchmarks run."""

import time

from dtq import task


@task
async def noop(text: str = "") -> None:
    """Do nothing: what is measured is dtq."""


@task
async def started_ns() -> int:
    """Say when the handler started, on the clock that all processes of a machine share."""
    return time.monotonic_ns()
