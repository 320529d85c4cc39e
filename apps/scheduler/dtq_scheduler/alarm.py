"""The alarm: sleeps until a time, and is told of anything that is due before.

Scripts that schedule a task say so on a channel when it is the first one due. That is a hint: while
the connection is lost, whoever waits here waits no longer than it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib

from dtq_core.clock import mono_s
from dtq_core.connections import Announcements
from dtq_core.errors import RedisError
from dtq_core.store import AsyncStore

_TRY_AGAIN_S = 5.0
_MOST_FORGOTTEN = 10_000


class Alarm:
    """Of one partition; opened when it is first waited for."""

    def __init__(self, store: AsyncStore, channel: str) -> None:
        """Set up with a store and the channel to hear."""
        self._store = store
        self._channel = channel
        self._heard: Announcements | None = None
        self._open_at_s = 0.0

    async def sleep(self, seconds: float) -> None:
        """Sleep for so long, or until what was heard of meanwhile is due."""
        end = mono_s() + seconds
        while (left := end - mono_s()) > 0:
            due_s = await self._next(left)
            if due_s is not None:
                end = min(end, mono_s() + due_s)
        await self._forget()

    async def close(self) -> None:
        """Stop listening."""
        if self._heard is not None:
            heard, self._heard = self._heard, None
            with contextlib.suppress(RedisError):
                await heard.close()

    async def _forget(self) -> None:
        """Drop what else was said until now: whoever slept will look at all that is due."""
        try:
            for _ in range(_MOST_FORGOTTEN):
                if self._heard is None or await self._heard.next(0) is None:
                    return
        except RedisError:
            await self._lose()

    async def _lose(self) -> None:
        await self.close()
        self._open_at_s = mono_s() + _TRY_AGAIN_S

    async def _next(self, seconds: float) -> float | None:
        """Wait for a hint: in how many seconds something is due."""
        try:
            if self._heard is None and mono_s() >= self._open_at_s:
                await self._open()
                return 0.0  # it may have been said before anybody listened
            if self._heard is not None:
                heard = await self._heard.next(seconds)
                known = heard is not None and heard.kind == "message" and heard.text.isdigit()
                return int(heard.text) / 1000 if heard is not None and known else None
        except RedisError:
            await self._lose()
        await asyncio.sleep(seconds)
        return None

    async def _open(self) -> None:
        self._heard = self._store.announcements()
        await self._heard.open()
        await self._heard.subscribe(self._channel)
