"""Ending asyncio tasks for certain."""

from __future__ import annotations

import asyncio
from typing import Any

_AGAIN_S = 0.2


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until all have ended, whatever they end with.

    One cancellation may get lost: library code that meets it while it connects or times out can
    turn it into something else. So those that go on are cancelled again.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN_S)
