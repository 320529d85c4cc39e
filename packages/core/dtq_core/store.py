"""The transitions and the reads of one deployment, run on a server: blocking and asynchronous.

What is sent and what replies mean is in :mod:`dtq_core.calls` and :mod:`dtq_core.reads`. Here lies
how it is sent: a call that may be repeated is sent again while the server is away, so that a lost
reply costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import TypeVar

from dtq_core import reads
from dtq_core.calls import Call, Calls
from dtq_core.clock import mono_s
from dtq_core.connections import Announcements, AsyncLink, Link, resolve_url
from dtq_core.errors import RedisDeniedError, RedisUnavailableError
from dtq_core.failpoints import reach
from dtq_core.fitness import check_layout, check_server, layout, server_info
from dtq_core.keyspace import Keyspace, Partitions, bands_of
from dtq_core.reads import Read
from dtq_core.settings import Settings

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


def _pauses(limit_s: float) -> Iterator[float]:
    """Seconds to wait before each further try, doubling, until the limit has passed."""
    end = mono_s() + limit_s
    pause = _FIRST_PAUSE_S
    while (left := end - mono_s()) > 0:
        yield min(pause, left)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


class _Deployment:
    """What both stores know: settings, partitions, and the calls of each."""

    def __init__(self, settings: Settings, url: str | None) -> None:
        self.settings = settings
        self.url = url or resolve_url(settings)
        self.partitions = Partitions(settings.prefix, settings.partitions)
        self.calls = tuple(
            Calls(keys.prefix, settings.events_maxlen, settings.audit_maxlen)
            for keys in self.partitions.all
        )

    def keys_of(self, task_id: str) -> Keyspace:
        """The keys of a task's partition. Errors as :meth:`Partitions.of`."""
        return self.partitions.of(task_id)

    def calls_of(self, task_id: str) -> Calls:
        """The calls of a task's partition. Errors as :meth:`Partitions.of`."""
        return self.calls[self.partitions.of(task_id).index]


class Store(_Deployment):
    """Runs calls and reads, and blocks until they are done; any number of threads may share it."""

    def __init__(self, settings: Settings, url: str | None = None, *, block_s: float = 0) -> None:
        """Prepare; nothing is sent yet.

        Args:
            settings: of this process.
            url: the server; found from the settings unless given.
            block_s: the longest time that a command is meant to block on the server.
        """
        super().__init__(settings, url)
        self.link = Link(settings, self.url, block_s=block_s)

    def run(self, call: Call[T], *, retry_s: float | None = None) -> T:
        """Run a script call.

        Args:
            call: what to run.
            retry_s: how long to try while the server is away; ``retry_timeout`` unless given.

        Raises:
            RedisError: as :mod:`dtq_core.errors` says.
        """
        limit = self.settings.retry_timeout if retry_s is None else retry_s
        pauses = _pauses(limit if call.repeatable else 0)
        while True:
            try:
                return call.decode(self.link.script(call.script, call.prefix, call.args))
            except RedisUnavailableError:
                pause = next(pauses, None)
                if pause is None:
                    raise
                time.sleep(pause)

    def read(self, read: Read[T], *, retry_s: float | None = None) -> T:
        """Run a read; it is tried again while the server is away. As :meth:`run`."""
        pauses = _pauses(self.settings.retry_timeout if retry_s is None else retry_s)
        while True:
            try:
                return read.decode(self.link.pipeline(read.commands, tolerant=read.tolerant))
            except RedisUnavailableError:
                pause = next(pauses, None)
                if pause is None:
                    raise
                time.sleep(pause)

    def check(
        self, *, eviction_matters: bool = False, lay_out: bool = True, retry_s: float = 0
    ) -> None:
        """Check that the server is fit and laid out for these settings.

        Args:
            eviction_matters: whether a server that may throw tasks away is refused.
            lay_out: whether the layout is recorded where none is; for looking only, it is not.
            retry_s: how long to try while the server is away.

        Raises:
            RedisUnfitError: if it is not; nothing was written.
        """
        with contextlib.suppress(RedisDeniedError):  # a right is missing: what follows tells more
            info = self.read(server_info(), retry_s=retry_s)
            check_server(info, eviction_matters=eviction_matters)
        recorded = self.read(layout(self.partitions, lay_out=False), retry_s=retry_s)
        if recorded is None and lay_out:
            recorded = self.read(layout(self.partitions, lay_out=True), retry_s=retry_s)
        check_layout(self.partitions, recorded)

    def close(self) -> None:
        """Close the connection."""
        self.link.close()


class AsyncStore(_Deployment):
    """The same for one event loop; calls may overlap."""

    def __init__(self, settings: Settings, url: str | None = None, *, block_s: float = 0) -> None:
        """Prepare; nothing is sent yet. Arguments as :class:`Store`."""
        super().__init__(settings, url)
        self.link = AsyncLink(settings, self.url, block_s=block_s)

    async def run(self, call: Call[T], *, retry_s: float | None = None) -> T:
        """Run a script call. Arguments and errors as :meth:`Store.run`."""
        limit = self.settings.retry_timeout if retry_s is None else retry_s
        pauses = _pauses(limit if call.repeatable else 0)
        while True:
            try:
                return call.decode(await self.link.script(call.script, call.prefix, call.args))
            except RedisUnavailableError:
                pause = next(pauses, None)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def read(self, read: Read[T], *, retry_s: float | None = None) -> T:
        """Run a read; it is tried again while the server is away. As :meth:`run`."""
        pauses = _pauses(self.settings.retry_timeout if retry_s is None else retry_s)
        while True:
            try:
                return read.decode(await self.link.pipeline(read.commands, tolerant=read.tolerant))
            except RedisUnavailableError:
                pause = next(pauses, None)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def check(
        self, *, eviction_matters: bool = False, lay_out: bool = True, retry_s: float = 0
    ) -> None:
        """Check the server. Arguments and errors as :meth:`Store.check`."""
        with contextlib.suppress(RedisDeniedError):
            info = await self.read(server_info(), retry_s=retry_s)
            check_server(info, eviction_matters=eviction_matters)
        recorded = await self.read(layout(self.partitions, lay_out=False), retry_s=retry_s)
        if recorded is None and lay_out:
            recorded = await self.read(layout(self.partitions, lay_out=True), retry_s=retry_s)
        check_layout(self.partitions, recorded)

    async def abandon(self, worker: str, *, seen_dead: bool = True) -> None:
        """Make everything that a dead worker held overdue, in every partition.

        Args:
            worker: its id.
            seen_dead: as :meth:`Calls.abandon`.

        Raises:
            RedisError: as :meth:`run`.
        """
        for keys, calls in zip(self.partitions.all, self.calls, strict=True):
            bands = bands_of(await self.read(reads.queue_names(keys)))
            call = calls.abandon(worker, bands, seen_dead=seen_dead)
            reach("abandon.before")
            while (done := await self.run(call)).left and done.moved:
                pass
            reach("abandon.after")

    def announcements(self) -> Announcements:
        """Return a subscriber with a connection of its own."""
        return self.link.announcements()

    async def close(self) -> None:
        """Close the connections."""
        await self.link.close()
