"""Listens to every command that a server carries out, those of scripts included."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from scripts.table import Table

Commands = list[tuple[str, str]]


@contextmanager
def monitored(table: Table) -> Iterator[Callable[[], Commands]]:
    """What is yielded returns each (command, first argument) since the beginning."""
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("r") as lines:
        connection.connect(unquote(urlsplit(table.store.url).path))
        connection.settimeout(5)
        connection.sendall(b"MONITOR\r\n")
        assert lines.readline().startswith("+OK")

        def heard() -> Commands:
            table.redis("ECHO", "the end")
            found = []
            while '"ECHO"' not in (line := lines.readline()):
                words = line.split('"')
                if len(words) > 3:
                    found.append((words[1].upper(), words[3]))
            return found

        yield heard
