"""A socket to a server of the test's own: many commands in one go, replies as Redis sends them."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from hiredis import Reader, pack_command

from dtq_core.scripts import Script

LIMIT_S = 30


class Pipe:
    """Sends commands together; a script is sent whole the first time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = Reader()
        self._awaited = 0
        self._loaded: set[str] = set()

    def send(self, commands: Iterable[Sequence[Any]]) -> None:
        """Send commands; their replies are to be received in the same order."""
        packed = [pack_command(tuple(command)) for command in commands]
        self._awaited += len(packed)
        self._connection.sendall(b"".join(packed))

    def receive(self) -> Any:
        """Return the next reply; an error is raised."""
        reply = self._next()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def discard(self) -> None:
        """Read all replies that are still to come."""
        while self._awaited:
            self._next()

    def _next(self) -> Any:
        while (reply := self._reader.gets()) is False:
            read = self._connection.recv(1 << 18)
            assert read, "the server is gone"
            self._reader.feed(read)
        self._awaited -= 1
        return reply

    def script(self, script: Script, prefix: str, args: Iterable[Any]) -> tuple[Any, ...]:
        """The command that runs a script."""
        if script.sha not in self._loaded:
            self._loaded.add(script.sha)
            return ("EVAL", script.text, 1, prefix, *args)
        return ("EVALSHA", script.sha, 1, prefix, *args)


@contextmanager
def connected(url: str) -> Iterator[Pipe]:
    """Connect to the server of a ``unix://`` URL."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        connection.connect(unquote(urlsplit(url).path))
        yield Pipe(connection)
