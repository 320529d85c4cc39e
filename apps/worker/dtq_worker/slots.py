"""The free places of a worker: how many more tasks it may run now."""

from __future__ import annotations

import asyncio


class Slots:
    """Counts places, and lets one loop wait for a free one.

    Attributes:
        total: how many there are.
        share: how many may be asked for at once. Half of them, so that Redis looks for the next
            tasks while the worker runs the last ones: with all at once they would wait in turns.
        free: how many more tasks may run now.
    """

    def __init__(self, total: int) -> None:
        """Begin with all places free.

        Args:
            total: how many there are.
        """
        self.total = total
        self.free = total
        self.share = max(1, total // 2)
        self._freed = asyncio.Event()

    def take(self, n: int) -> None:
        """Occupy places; adopted tasks may drive the number of free ones below zero."""
        self.free -= n

    def give(self, n: int = 1) -> None:
        """Free places."""
        self.free += n
        self._freed.set()

    async def some_free(self) -> None:
        """Wait until at least one place is free."""
        while self.free <= 0:
            self._freed.clear()
            await self._freed.wait()
