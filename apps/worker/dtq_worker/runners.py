"""Where a handler runs: ``async def`` on the loop, ``def`` in a thread."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ThreadRunner:
    """Runs functions in threads, as many as there are slots; each is started when it is needed."""

    def __init__(self, size: int) -> None:
        """Set up.

        Args:
            size: the most threads.
        """
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="dtq-handler")

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function that raises nothing in a thread, and return what it returns.

        A thread cannot be stopped: cancelling this leaves it running.
        """
        context = contextvars.copy_context()
        return await asyncio.wrap_future(self._pool.submit(context.run, function))

    def close(self) -> None:
        """Let idle threads end; running ones cannot be stopped."""
        self._pool.shutdown(wait=False, cancel_futures=True)
