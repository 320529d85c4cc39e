"""The other end of the ceiling of a hand-over: a bare waiter in the place of a worker.

It waits for a token as a worker does, calls a script that does nothing in the place of a claim, and
says when it had the answer.
"""

from __future__ import annotations

import asyncio
import sys
import time

from dtq_core.connections import AsyncLink
from dtq_core.settings import Settings

BLOCK_S = 5


async def main(url: str) -> None:
    """Answer tokens until one says that it was the last."""
    link = AsyncLink(Settings(redis_url=url), url, block_s=BLOCK_S)
    token = None
    while token != b"last":
        found = await link.raw("BLPOP", "wake", BLOCK_S)
        token = found and found[1]
        if token == b"next":
            await link.raw("EVAL", "return 1", 1, "c")
            await link.raw("RPUSH", "started", time.monotonic_ns())
    await link.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
