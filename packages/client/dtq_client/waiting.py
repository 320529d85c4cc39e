"""Waits for the end of tasks: one connection, however many wait.

A waiter's channel is subscribed to, then its task is marked as watched (script ``watch``), in this
order, so that no end is missed. An announcement may still be lost with a connection or a server;
hence all watched tasks are looked at once in a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from dtq_core.calls import batches
from dtq_core.cancelling import cancel
from dtq_core.clock import mono_s
from dtq_core.connections import Announcements
from dtq_core.errors import CorruptDataError, DtqError, RedisError
from dtq_core.scripts import Code
from dtq_core.store import AsyncStore

_LOOK_AGAIN_S = 1.0
_RECONNECT_S = 0.5


class Waiting:
    """All waiters of one client."""

    def __init__(self, store: AsyncStore) -> None:
        """Take the store to watch through; nothing is sent before the first wait."""
        self._store = store
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._announcements: Announcements | None = None
        self._pump: asyncio.Task[None] | None = None
        self._looked_s = mono_s()

    async def ended(self, task_id: str, timeout_s: float | None) -> bool:
        """Wait until a task has ended or is gone.

        Args:
            task_id: the task.
            timeout_s: how long; None for as long as it takes.

        Returns:
            False when the time was over first.

        Raises:
            CorruptDataError: if its record is not ours.
            DtqError: if the client was closed meanwhile.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(task_id, set()).add(future)
        try:
            async with asyncio.timeout(timeout_s):
                if self._pump is None or self._pump.done():
                    self._pump = asyncio.create_task(self._run(), name="dtq-waiting")
                elif self._announcements is not None:
                    with contextlib.suppress(RedisError):  # the pump connects again
                        await self._announcements.subscribe(self._channel(task_id))
                await future
        except TimeoutError:
            return False
        finally:
            await self._leave(task_id, future)
        return True

    async def close(self) -> None:
        """Stop listening, and tell whoever still waits."""
        if self._pump is not None:
            await cancel(self._pump)
        for task_id in self._waiters:
            self._fail(task_id, DtqError, f"the client was closed; task {task_id} had not ended")

    async def _leave(self, task_id: str, future: asyncio.Future[None]) -> None:
        waiters = self._waiters[task_id]
        waiters.discard(future)
        if not waiters:
            del self._waiters[task_id]
            if self._announcements is not None:
                with contextlib.suppress(RedisError):
                    await self._announcements.unsubscribe(self._channel(task_id))

    def _channel(self, task_id: str) -> str:
        return self._store.keys_of(task_id).done(task_id)

    async def _run(self) -> None:
        """Listen, and listen again after each lost connection; while that fails, look."""
        while True:
            # Whatever goes wrong, those who wait still wait: none may hang because this has ended.
            with contextlib.suppress(Exception):
                await self._listen()
            await asyncio.sleep(_RECONNECT_S)
            with contextlib.suppress(DtqError):
                await self._watch(list(self._waiters))

    async def _listen(self) -> None:
        announcements = self._store.announcements()
        try:
            await announcements.open()
            self._announcements = announcements  # who comes from now on subscribes by itself
            for task_id in list(self._waiters):
                await announcements.subscribe(self._channel(task_id))
            while True:
                await self._hear(announcements)
        finally:
            self._announcements = None
            with contextlib.suppress(RedisError):
                await announcements.close()

    async def _hear(self, announcements: Announcements) -> None:
        """Deal with an announcement and all that came with it; now and then look at all tasks."""
        heard = await announcements.next(_LOOK_AGAIN_S)
        subscribed: list[str] = []
        while heard is not None:
            kind, channel, _ = heard
            task_id = channel.rpartition(":")[2]
            if kind == "message":
                self._wake(task_id)
            elif kind == "subscribe" and task_id in self._waiters:
                subscribed.append(task_id)
            heard = await announcements.next(0)
        if mono_s() - self._looked_s >= _LOOK_AGAIN_S:
            self._looked_s = mono_s()
            await self._watch(list(self._waiters))
        else:
            await self._watch(subscribed)

    async def _watch(self, task_ids: Iterable[str]) -> None:
        by_partition: dict[int, list[str]] = {}
        for task_id in task_ids:
            by_partition.setdefault(self._store.keys_of(task_id).index, []).append(task_id)
        for index, ids in by_partition.items():
            for batch in batches(ids):
                answers = await self._store.run(self._store.calls[index].watch(batch), retry_s=0)
                for task_id, answer in zip(batch, answers, strict=True):
                    if answer.code is Code.CORRUPT:
                        why = f"the record of task {task_id} is not dtq's"
                        self._fail(task_id, CorruptDataError, why)
                    elif answer.code is not Code.OK:
                        self._wake(task_id)

    def _wake(self, task_id: str) -> None:
        for future in self._waiters.get(task_id, ()):
            if not future.done():
                future.set_result(None)

    def _fail(self, task_id: str, kind: type[DtqError], why: str) -> None:
        for future in self._waiters.get(task_id, ()):
            if not future.done():
                future.set_exception(kind(why))
