"""Where a handler runs: ``async def`` on the loop, ``def`` in a thread."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import structlog

T = TypeVar("T")

_log = structlog.get_logger("dtq.runners")

_TRY_AGAIN_S = 0.2


class ThreadRunner:
    """Runs functions in threads, as many as there are slots; each is started when it is needed."""

    def __init__(self, size: int) -> None:
        """Set up.

        Args:
            size: the most threads.
        """
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="dtq-handler")
        self._open = True

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function that raises nothing in a thread, and return what it returns.

        While no thread can be started, it waits. A thread cannot be stopped: cancelling this leaves
        it running.

        Raises:
            RuntimeError: if this runner is closed before the function has begun.
        """
        while True:
            future = self._begin(function)
            if future is not None:
                return await asyncio.wrap_future(future)
            await asyncio.sleep(_TRY_AGAIN_S)

    def close(self) -> None:
        """Let idle threads end; running ones cannot be stopped."""
        self._open = False
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, function: Callable[[], T]) -> Future[T] | None:
        """Hand a function to the pool; None if it was not to be had and will not run.

        A pool that cannot start a thread has queued the function all the same, and another thread
        may run it at any time. So the function is ours to cancel, not the pool's.
        """
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(function())

        try:
            self._pool.submit(contextvars.copy_context().run, work)
        except RuntimeError as error:
            if not self._open:
                raise
            if future.cancel():
                _log.warning("no thread can be started; it is tried again", error=str(error))
                return None
        return future
