"""Waiting, for threads: an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from dtq_client.waiting import Waiting
from dtq_core.store import AsyncStore, Store


class WaitingThread:
    """Serves all waiting threads of one client, in one process."""

    def __init__(self, store: Store) -> None:
        """Start the thread.

        Args:
            store: whose server and settings it takes; its connections are its own.
        """
        self._store = AsyncStore(store.settings, store.url)
        self._waiting = Waiting(self._store)
        made: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(
            target=self._run, args=[made], name="dtq-waiting", daemon=True
        )
        self._thread.start()
        self._loop = made.result()

    @staticmethod
    def _run(made: Future[asyncio.AbstractEventLoop]) -> None:
        """Run a loop that is made here, since Ctrl-C may break off what the main thread makes."""
        loop = asyncio.new_event_loop()
        made.set_result(loop)
        loop.run_forever()

    def start(self, task_id: str, timeout_s: float | None) -> Future[bool]:
        """Begin to wait; the answer is that of :meth:`Waiting.ended`."""
        return asyncio.run_coroutine_threadsafe(self._waiting.ended(task_id, timeout_s), self._loop)

    def close(self) -> None:
        """Tell whoever still waits, and end the thread and its connections."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        await self._waiting.close()
        me = asyncio.current_task()
        if told := [task for task in asyncio.all_tasks() if task is not me]:
            await asyncio.wait(told)
        await self._store.close()
