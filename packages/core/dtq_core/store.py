"""The transitions and the reads of one deployment, run on a server: blocking and asynchronous.

What is sent and what replies mean is in :mod:`dtq_core.calls` and :mod:`dtq_core.reads`. Here lies
how it is sent: a call that may be repeated is sent again while the server is away, so that a lost
reply costs nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any, TypeVar

from dtq_core import reads
from dtq_core.calls import Call, Calls, batches
from dtq_core.clock import mono_s
from dtq_core.connections import Announcements, AsyncLink, Link, resolve_url
from dtq_core.durability import (
    SYNCED_REPLY,
    WAIT,
    WAITAOF,
    Confirmation,
    Way,
    append_settings,
    check_replicas,
    check_synced,
    check_waitaof,
    may_wait,
    may_wait_for_disk,
    replication,
)
from dtq_core.errors import (
    OutcomeUnknownError,
    RedisBusyError,
    RedisDeniedError,
    RedisError,
    RedisUnavailableError,
    RedisUnreachableError,
)
from dtq_core.failpoints import reach
from dtq_core.fitness import check_layout, check_server, layout, server_info
from dtq_core.keyspace import Keyspace, Partitions, bands_of
from dtq_core.limits import Durability
from dtq_core.measures import Measures
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
        self._ways: dict[str, Way] = {}
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

    def _confirmation(self, way: Way) -> Confirmation:
        return Confirmation(way, math.ceil(1000 * self.settings.durability_timeout))


class _Doubt:
    """Whether a call may have arrived, over all its tries."""

    def __init__(self, call: Call[Any]) -> None:
        self._call = call
        self._sent = False

    def final(self, error: RedisError) -> RedisError:
        """Note a failed try, and return the error to raise if it was the last one."""
        refused = RedisBusyError | RedisUnreachableError
        if isinstance(error, RedisUnavailableError) and not isinstance(error, refused):
            self._sent = True
        if self._sent and self._call.task_ids:
            return OutcomeUnknownError(self._call.task_ids, str(error))
        return error


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
        self._patient = Link(settings, self.url, block_s=settings.durability_timeout)

    def run(self, call: Call[T], *, retry_s: float | None = None) -> T:
        """Run a script call.

        Args:
            call: what to run.
            retry_s: how long to try while the server is away; ``retry_timeout`` unless given.

        Raises:
            OutcomeUnknownError: if it submits, and may have arrived or is not confirmed.
            RedisError: as :mod:`dtq_core.errors` says.
        """
        limit = self.settings.retry_timeout if retry_s is None else retry_s
        pauses, doubt = _pauses(limit if call.repeatable else 0), _Doubt(call)
        link = self._patient if call.after else self.link
        while True:
            try:
                reply = link.script(call.script, call.prefix, call.args, call.before, call.after)
            except RedisError as error:
                final = doubt.final(error)
                pause = next(pauses, None) if isinstance(error, RedisUnavailableError) else None
                if pause is None:
                    raise final from None
                time.sleep(pause)
            else:
                return call.decode(reply)

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

    def confirmation(self, durability: str) -> Confirmation | None:
        """Return how a submission is confirmed here; the server is asked once for each level.

        Args:
            durability: how far it must have got, a :class:`Durability`.

        Returns:
            What a call takes; None where its reply is enough.

        Raises:
            RedisUnfitError: if this server cannot confirm that.
            RedisDeniedError: if the right to ask it is missing.
        """
        if durability == Durability.MEMORY:
            return None
        if durability not in self._ways:
            to_disk = durability == Durability.DISK
            self._ways[durability] = self._disk_way() if to_disk else self._replica_way()
        return self._confirmation(self._ways[durability])

    def _replica_way(self) -> Way:
        self.read(may_wait())
        with contextlib.suppress(RedisDeniedError):  # then WAIT itself tells
            check_replicas(self.read(replication()))
        return WAIT

    def _disk_way(self) -> Way:
        try:
            self.read(may_wait_for_disk())
        except RedisError as refusal:
            check_waitaof(refusal)
        else:
            return WAITAOF
        check_synced(self.read(append_settings()))
        return SYNCED_REPLY

    def close(self) -> None:
        """Close the connection."""
        self.link.close()
        self._patient.close()


class AsyncStore(_Deployment):
    """The same for one event loop; calls may overlap."""

    def __init__(self, settings: Settings, url: str | None = None, *, block_s: float = 0) -> None:
        """Prepare; nothing is sent yet. Arguments as :class:`Store`."""
        super().__init__(settings, url)
        self.link = AsyncLink(settings, self.url, block_s=block_s)
        self._patient = AsyncLink(settings, self.url, block_s=settings.durability_timeout)

    async def run(self, call: Call[T], *, retry_s: float | None = None) -> T:
        """Run a script call. Arguments and errors as :meth:`Store.run`."""
        limit = self.settings.retry_timeout if retry_s is None else retry_s
        pauses, doubt = _pauses(limit if call.repeatable else 0), _Doubt(call)
        link = self._patient if call.after else self.link
        while True:
            try:
                reply = await link.script(
                    call.script, call.prefix, call.args, call.before, call.after
                )
            except RedisError as error:
                final = doubt.final(error)
                pause = next(pauses, None) if isinstance(error, RedisUnavailableError) else None
                if pause is None:
                    raise final from None
                await asyncio.sleep(pause)
            else:
                return call.decode(reply)

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

    async def confirmation(self, durability: str) -> Confirmation | None:
        """Return how a submission is confirmed here. As :meth:`Store.confirmation`."""
        if durability == Durability.MEMORY:
            return None
        if durability not in self._ways:
            to_disk = durability == Durability.DISK
            self._ways[durability] = await (self._disk_way() if to_disk else self._replica_way())
        return self._confirmation(self._ways[durability])

    async def _replica_way(self) -> Way:
        await self.read(may_wait())
        with contextlib.suppress(RedisDeniedError):  # then WAIT itself tells
            check_replicas(await self.read(replication()))
        return WAIT

    async def _disk_way(self) -> Way:
        try:
            await self.read(may_wait_for_disk())
        except RedisError as refusal:
            check_waitaof(refusal)
        else:
            return WAITAOF
        check_synced(await self.read(append_settings()))
        return SYNCED_REPLY

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

    async def add_measures(self, measures: Measures) -> None:
        """Add to what workers measured. Errors as :meth:`run`; some may have been added then."""
        key = self.partitions.all[0].measures
        commands = [("HINCRBY", key, name, value) for name, value in measures.fields()]
        for batch in batches(commands):
            await self.link.pipeline(batch, tolerant=True)

    def announcements(self) -> Announcements:
        """Return a subscriber with a connection of its own."""
        return self.link.announcements()

    async def close(self) -> None:
        """Close the connections."""
        await self.link.close()
        await self._patient.close()
