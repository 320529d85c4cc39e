"""From a URL to a connection, and from an error of redis-py to one of ours.

:class:`Link` and :class:`AsyncLink` are all that the rest of dtq knows of a Redis client: plain
commands, pipelines and scripts, with time-outs, and with our own errors. No other module catches
an exception of redis-py.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import Any, NamedTuple

import redis
import redis.asyncio
from hiredis import pack_command
from redis import exceptions as rx
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from dtq_core.embedded import find_running
from dtq_core.errors import (
    CorruptDataError,
    RedisBusyError,
    RedisDeniedError,
    RedisError,
    RedisFullError,
    RedisUnavailableError,
    RedisUnreachableError,
    SettingsError,
)
from dtq_core.scripts import Script
from dtq_core.settings import Settings, project_folder

_MAX_CONNECTIONS = 16

_SCHEMES = {"redis", "rediss", "unix"}
_LATER_SCHEMES = {"redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}

# What a server says, by the first word of its error or of the error that a script met inside.
_BY_WORD: dict[str, type[RedisError]] = {
    "OOM": RedisFullError,
    "NOAUTH": RedisDeniedError,
    "WRONGPASS": RedisDeniedError,
    "NOPERM": RedisDeniedError,
    "CORRUPT": CorruptDataError,
    "WRONGTYPE": CorruptDataError,
    "READONLY": RedisBusyError,
    "LOADING": RedisBusyError,
    "BUSY": RedisBusyError,
    "MASTERDOWN": RedisBusyError,
    "CLUSTERDOWN": RedisBusyError,
    "TRYAGAIN": RedisBusyError,
    "MISCONF": RedisBusyError,
    "NOREPLICAS": RedisBusyError,
    "UNBLOCKED": RedisBusyError,
    "UNKILLABLE": RedisBusyError,
}
_WORD = re.compile(rf"(?:^|[ :'-])({'|'.join(_BY_WORD)})\b")

# What redis-py raises, first match first; then the words above.
_BY_TYPE: tuple[tuple[type[Exception], type[RedisError]], ...] = (
    (rx.AuthenticationError, RedisDeniedError),
    (rx.AuthorizationError, RedisDeniedError),
    (rx.NoPermissionError, RedisDeniedError),
    (rx.OutOfMemoryError, RedisFullError),
    (rx.BusyLoadingError, RedisBusyError),
    (rx.ReadOnlyError, RedisBusyError),
    (rx.ClusterDownError, RedisBusyError),  # MASTERDOWN as well
    (rx.TryAgainError, RedisBusyError),
)
# What is left of these when the text has no such word, as it has where a connection was refused.
_LOST = (rx.ConnectionError, rx.TimeoutError, OSError)
# What a server answers to one command among others; redis-py takes some for a lost connection.
_ANSWERED = (
    rx.ResponseError,
    rx.AuthenticationError,
    rx.AuthorizationError,
    rx.BusyLoadingError,
)


class ScriptUnknownError(RedisError):
    """The server does not know a script by its hash; seen only by what sends scripts."""


def translate(error: Exception, where: str) -> RedisError:
    """Return our error for one of redis-py or the operating system.

    Args:
        error: what was raised.
        where: the server, without its password, for the message.
    """
    text = " ".join(str(error).split())
    if not text:
        text = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
    if isinstance(error, rx.NoScriptError):
        return ScriptUnknownError(text)
    return _kind(error, text)(f"Redis at {where}: {text}")


def _kind(error: Exception, text: str) -> type[RedisError]:
    for kind, ours in _BY_TYPE:
        if isinstance(error, kind):
            return ours
    if (word := _WORD.search(text)) is not None:
        return _BY_WORD[word[1]]
    return RedisUnavailableError if isinstance(error, _LOST) else RedisError


class _Progress:
    """How far a command got, for the error if it gets no further.

    Attributes:
        connecting: that it waits for a new connection; nothing has been sent.
    """

    __slots__ = ("connecting",)

    def __init__(self) -> None:
        self.connecting = False

    def translate(self, error: Exception, where: str) -> RedisError:
        """Return our error, as :func:`translate`."""
        ours = translate(error, where)
        if self.connecting and type(ours) is RedisUnavailableError:
            return RedisUnreachableError(str(ours))
        return ours


def redact(url: str) -> str:
    """Return a URL without its user and password, fit for messages and logs.

    It need not be a valid URL, and may lack its scheme.
    """
    scheme, separator, rest = url.partition("?")[0].rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def resolve_url(settings: Settings) -> str:
    """Return the URL of the server: the setting, or this project's embedded one.

    Raises:
        SettingsError: for a URL of no known form.
        RedisUnavailableError: when none is set and none is running here.
    """
    if settings.redis_url is None:
        url = find_running(project_folder())
        if url is None:
            raise RedisUnavailableError(
                "no Redis: set DTQ_REDIS_URL (redis://host:6379), or start one with: dtq dev"
            )
        return url
    scheme, separator, _ = settings.redis_url.partition("://")
    if scheme in _LATER_SCHEMES:
        raise SettingsError(f"DTQ_REDIS_URL: {scheme}:// is not supported yet; use redis://")
    if scheme not in _SCHEMES or not separator:
        raise SettingsError(
            f"DTQ_REDIS_URL={redact(settings.redis_url)!r} is not a Redis URL: "
            "use redis://host:6379, rediss://host:6379 or unix:///path/to.sock"
        )
    return settings.redis_url


def _options(settings: Settings, url: str, block_s: float) -> dict[str, Any]:
    """Options of both clients. dtq sends again by itself, where that is safe; redis-py must not."""
    options = {
        "socket_connect_timeout": settings.connect_timeout,
        "socket_timeout": settings.connect_timeout + block_s,
        "protocol": 2,
        "client_name": "dtq",
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True
    return options


def _checked(replies: list[Any]) -> list[Any]:
    """Replies among which only a wrong type is no error, but None."""
    for reply in replies:
        if isinstance(reply, Exception) and "WRONGTYPE" not in str(reply):
            raise reply
    return [None if isinstance(reply, Exception) else reply for reply in replies]


def _raised(replies: list[Any], decisive: int) -> list[Any]:
    """Replies of which so many at the beginning are no errors."""
    for reply in replies[:decisive]:
        if isinstance(reply, Exception):
            raise reply
    return replies


class _Passage:
    """One use of a link: it holds a place, and makes errors ours.

    A generator with a semaphore would cost a submission several microseconds more.
    """

    __slots__ = ("_link", "_places", "_progress")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._places = link.places
        self._progress = _Progress()

    def __enter__(self) -> _Progress:
        self._places.get()
        return self._progress

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._places.put(None)
        if isinstance(error, rx.RedisError | OSError):
            ours = self._progress.translate(error, self._link.where)
            if isinstance(ours, RedisUnavailableError):  # the idle connections are as old
                self._link.disconnect_free()
            raise ours from None


class Link:
    """Connections for any number of threads, opened as needed and again after an error.

    No more than ``_MAX_CONNECTIONS`` run at once, and one for each partition; the others wait.
    """

    def __init__(self, settings: Settings, url: str, *, block_s: float = 0) -> None:
        """Prepare a connection.

        Args:
            settings: of this process.
            url: the server.
            block_s: the longest time that a command is meant to block on the server.

        Raises:
            SettingsError: for a URL that cannot be read.
        """
        self.where = redact(url)
        self._size = _MAX_CONNECTIONS + settings.partitions
        try:
            self._client = redis.Redis.from_url(
                url, **_options(settings, url, block_s), retry=Retry(NoBackoff(), 0)
            )
        except ValueError as error:
            raise SettingsError(f"DTQ_REDIS_URL: {error}") from None
        self._begin()

    def _begin(self) -> None:
        """Begin without connections, in a new process too: a parent's are left alone."""
        self._pid = os.getpid()
        self._free: list[Any] = []
        self.places: SimpleQueue[None] = SimpleQueue()
        for _ in range(self._size):
            self.places.put(None)

    def _translated(self) -> _Passage:
        """Wait for a place, and translate errors."""
        if self._pid != os.getpid():
            self._begin()
        return _Passage(self)

    def disconnect_free(self) -> None:
        """Close the connections that nobody uses; they are opened again when needed."""
        self._client.connection_pool.disconnect(inuse_connections=False)
        with suppress(IndexError):
            while True:
                self._free.pop().disconnect()

    def command(self, *args: Any) -> Any:
        """Run one command.

        Raises:
            RedisError: as :mod:`dtq_core.errors` says.
        """
        with self._translated():
            return self._client.execute_command(*args)  # type: ignore[no-untyped-call]

    def pipeline(self, commands: Sequence[Sequence[Any]], *, tolerant: bool = False) -> list[Any]:
        """Run commands in one round trip, each on its own; an error among the replies is raised.

        Where it is tolerant, the reply of a key of a wrong type is None.
        """
        with self._translated():
            pipe = self._client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)  # type: ignore[no-untyped-call]
            return _checked(pipe.execute(raise_on_error=not tolerant))

    def raw(self, *args: Any) -> Any:
        """Run one command the short way: its reply is not interpreted. Errors as :meth:`command`.

        redis-py's own way costs three times as much; this is the path of every task.
        """
        with self._translated() as progress:
            connection = self._open(progress)
            try:
                connection.send_packed_command([pack_command(args)])
                reply = connection.read_response()
            except rx.ResponseError:
                self._free.append(connection)
                raise
            except BaseException:  # the reply may still come: nobody else must read it
                connection.disconnect()
                raise
            self._free.append(connection)
            return reply

    def burst(self, commands: Sequence[Sequence[Any]], decisive: int = 1) -> list[Any]:
        """Run commands in one round trip on one connection, the short way.

        The errors of so many at the beginning are raised, as by :meth:`command`; an error of
        another is its reply.
        """
        with self._translated() as progress:
            connection = self._open(progress)
            replies: list[Any] = []
            try:
                connection.send_packed_command([pack_command(tuple(each)) for each in commands])
                for _ in commands:
                    try:
                        replies.append(connection.read_response())
                    except _ANSWERED as error:
                        replies.append(error)
            except BaseException:
                connection.disconnect()
                raise
            self._free.append(connection)
            return _raised(replies, decisive)

    def script(
        self,
        script: Script,
        prefix: str,
        args: Sequence[Any],
        before: Sequence[Sequence[Any]] = (),
        after: Sequence[Sequence[Any]] = (),
    ) -> Any:
        """Run a script on the partition of a prefix; it is loaded where it is not known.

        Args:
            script: what runs.
            prefix: its KEYS[1].
            args: its ARGV.
            before: commands to send ahead of it on its connection; they are sent once more where
                the script was not known.
            after: commands to send behind it. With any of either, the list of all replies is
                returned, as by :meth:`burst`; the errors of those behind it are not raised.
        """
        try:
            return self._script("EVALSHA", script.sha, prefix, args, before, after)
        except ScriptUnknownError:
            return self._script("EVAL", script.text, prefix, args, before, after)

    def _script(
        self,
        how: str,
        what: str,
        prefix: str,
        args: Sequence[Any],
        before: Sequence[Sequence[Any]],
        after: Sequence[Sequence[Any]],
    ) -> Any:
        command = (how, what, 1, prefix, *args)
        if before or after:
            return self.burst([*before, command, *after], decisive=len(before) + 1)
        return self.raw(*command)

    def _open(self, progress: _Progress) -> Any:
        """Return a connection that nobody uses, connected."""
        connection = self._take()
        progress.connecting = True
        try:
            connection.connect()
        except BaseException:
            connection.disconnect()
            raise
        progress.connecting = False
        return connection

    def _take(self) -> Any:
        """Return a connection that nobody uses."""
        try:
            return self._free.pop()
        except IndexError:  # a new one, which the pool does not count among its own
            pool = self._client.connection_pool
            return pool.connection_class(**pool.connection_kwargs)

    def close(self) -> None:
        """Close what is open."""
        if self._pid == os.getpid():
            self.disconnect_free()
            self._client.close()


class AsyncLink:
    """The same for one event loop; commands may overlap, each has a connection while it runs.

    Once that loop is closed, another one may go on.

    No more than ``_MAX_CONNECTIONS`` run at once, and one for each partition; the others wait.
    """

    def __init__(self, settings: Settings, url: str, *, block_s: float = 0) -> None:
        """Prepare connections. Arguments and errors as :class:`Link`."""
        self.where = redact(url)
        self._limit_s = settings.connect_timeout + block_s
        self._size = _MAX_CONNECTIONS + settings.partitions
        self._loop: asyncio.AbstractEventLoop | None = None
        # Time is limited here, by asyncio.timeout: redis-py would use asyncio.wait_for, which may
        # swallow a cancellation before Python 3.12, and costs a task for every command.
        options = {**_options(settings, url, block_s), "socket_timeout": None}
        self._new_client = functools.partial(redis.asyncio.Redis.from_url, url, **options)
        self._begin()

    def _begin(self) -> None:
        """Begin without connections."""
        try:
            self._client = self._new_client(retry=AsyncRetry(NoBackoff(), 0))
        except ValueError as error:
            raise SettingsError(f"DTQ_REDIS_URL: {error}") from None
        self._new_connection: Callable[[], Any] = self._client.connection_pool.make_connection
        self._free: list[Any] = []
        self._places = asyncio.Semaphore(self._size)

    def _enter_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            if not self._loop.is_closed():
                raise RuntimeError("it belongs to another event loop, which is not closed")
            self._begin()
        self._loop = loop

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[_Progress]:
        """Wait for a place, limit the time, and translate errors."""
        self._enter_loop()
        progress = _Progress()
        try:
            async with self._places, asyncio.timeout(self._limit_s):
                yield progress
        except (rx.RedisError, OSError) as error:
            ours = progress.translate(error, self.where)
            if isinstance(ours, RedisUnavailableError):
                await self._disconnect_free()
            raise ours from None

    async def command(self, *args: Any) -> Any:
        """Run one command. Errors as :meth:`Link.command`."""
        async with self._translated():
            return await self._client.execute_command(*args)  # type: ignore[no-untyped-call]

    async def pipeline(
        self, commands: Sequence[Sequence[Any]], *, tolerant: bool = False
    ) -> list[Any]:
        """Run commands in one round trip, as :meth:`Link.pipeline`."""
        async with self._translated():
            pipe = self._client.pipeline(transaction=False)
            for command in commands:
                pipe.execute_command(*command)
            return _checked(await pipe.execute(raise_on_error=not tolerant))

    async def raw(self, *args: Any) -> Any:
        """Run one command the short way, as :meth:`Link.raw`."""
        async with self._translated() as progress:
            connection = await self._open(progress)
            try:
                await connection.send_packed_command(pack_command(args))
                reply = await connection.read_response()
            except rx.ResponseError:
                self._free.append(connection)
                raise
            except BaseException:  # cancelled as well: nobody else must read the reply
                await connection.disconnect(nowait=True)
                raise
            self._free.append(connection)
            return reply

    async def burst(self, commands: Sequence[Sequence[Any]], decisive: int = 1) -> list[Any]:
        """Run commands in one round trip on one connection, as :meth:`Link.burst`."""
        async with self._translated() as progress:
            connection = await self._open(progress)
            replies: list[Any] = []
            try:
                packed = [pack_command(tuple(each)) for each in commands]
                await connection.send_packed_command(packed)
                for _ in commands:
                    try:
                        replies.append(await connection.read_response())
                    except _ANSWERED as error:
                        replies.append(error)
            except BaseException:
                await connection.disconnect(nowait=True)
                raise
            self._free.append(connection)
            return _raised(replies, decisive)

    async def script(
        self,
        script: Script,
        prefix: str,
        args: Sequence[Any],
        before: Sequence[Sequence[Any]] = (),
        after: Sequence[Sequence[Any]] = (),
    ) -> Any:
        """Run a script on the partition of a prefix, as :meth:`Link.script`."""
        try:
            return await self._script("EVALSHA", script.sha, prefix, args, before, after)
        except ScriptUnknownError:
            return await self._script("EVAL", script.text, prefix, args, before, after)

    async def _script(
        self,
        how: str,
        what: str,
        prefix: str,
        args: Sequence[Any],
        before: Sequence[Sequence[Any]],
        after: Sequence[Sequence[Any]],
    ) -> Any:
        command = (how, what, 1, prefix, *args)
        if before or after:
            return await self.burst([*before, command, *after], decisive=len(before) + 1)
        return await self.raw(*command)

    async def _open(self, progress: _Progress) -> Any:
        """Return a connection that nobody uses, connected."""
        connection = self._free.pop() if self._free else self._new_connection()
        progress.connecting = True
        try:
            if connection.is_connected and connection._reader.at_eof():
                await connection.disconnect(nowait=True)  # the server closed it while idle
            await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        progress.connecting = False
        return connection

    async def _disconnect_free(self) -> None:
        await self._client.connection_pool.disconnect(inuse_connections=False)
        while self._free:
            await self._free.pop().disconnect()

    async def close(self) -> None:
        """Close what is open."""
        self._enter_loop()
        await self._disconnect_free()
        await self._client.aclose()

    def announcements(self) -> Announcements:
        """Return a subscriber of its own connection."""
        self._enter_loop()
        return Announcements(self._new_connection(), self.where, self._limit_s)


class Heard(NamedTuple):
    """What was heard: ``subscribe`` once the channel is listened to, or a ``message``."""

    kind: str
    channel: str
    text: bytes


class Announcements:
    """One connection that listens on any number of channels. Once it is lost, it stays so.

    One task may listen while others subscribe.
    """

    def __init__(self, connection: Any, where: str, limit_s: float) -> None:
        """Take a connection.

        Args:
            connection: a new one of ``redis.asyncio``.
            where: the server, for messages.
            limit_s: how long the server may take.
        """
        self._connection = connection
        self._where = where
        self._limit_s = limit_s
        self._lost = False

    async def open(self) -> None:
        """Connect. Errors as :meth:`next`."""
        await self._guard(self._connection.connect())

    async def subscribe(self, channel: str) -> None:
        """Ask to hear a channel; ``next`` says when that holds. Errors as :meth:`next`."""
        await self._send("SUBSCRIBE", channel)

    async def unsubscribe(self, channel: str) -> None:
        """Stop hearing a channel. Errors as :meth:`next`."""
        await self._send("UNSUBSCRIBE", channel)

    async def next(self, timeout_s: float) -> Heard | None:
        """Return the next thing heard; None where that is nothing, in the seconds given.

        Raises:
            RedisUnavailableError: when the connection is lost.
            RedisDeniedError: when the right to listen is missing.
        """
        heard = await self._guard(self._connection.read_response(timeout=timeout_s), timeout_s)
        if heard is None:
            return None
        kind, channel, text = heard
        return Heard(kind.decode(), channel.decode(), text if kind == b"message" else b"")

    async def close(self) -> None:
        """Close the connection."""
        await self._guard(self._connection.disconnect())

    async def _send(self, command: str, channel: str) -> None:
        if self._lost:  # redis-py would connect again, to hear nothing
            raise RedisUnavailableError(f"Redis at {self._where}: connection lost")
        await self._guard(self._connection.send_command(command, channel))

    async def _guard(self, work: Awaitable[Any], longer_s: float = 0) -> Any:
        try:
            async with asyncio.timeout(self._limit_s + longer_s):
                return await work
        except (rx.RedisError, OSError) as error:
            self._lost = True
            raise translate(error, self._where) from None
        except AttributeError:  # of redis-py: another task has just found the connection broken
            self._lost = True
            raise RedisUnavailableError(f"Redis at {self._where}: connection lost") from None
