"""Faults that last: each begins with the block, and at its end the server is as it was."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
import redis

from dtq_core.embedded import TemporaryServer
from dtq_core.errors import RedisError
from support.scene import Scene

Outage = Callable[[TemporaryServer, Scene], AbstractContextManager[None]]


@contextlib.contextmanager
def killed(server: TemporaryServer, scene: Scene) -> Iterator[None]:
    server.kill()
    yield
    server.restart()


@contextlib.contextmanager
def read_only(server: TemporaryServer, scene: Scene) -> Iterator[None]:
    """The server follows another one, which is not there."""
    scene.hand.command("REPLICAOF", "127.0.0.1", "1")
    yield
    scene.hand.command("REPLICAOF", "NO", "ONE")


@contextlib.contextmanager
def full(server: TemporaryServer, scene: Scene) -> Iterator[None]:
    scene.hand.command("CONFIG", "SET", "maxmemory", "1")
    yield
    scene.hand.command("CONFIG", "SET", "maxmemory", "0")


@contextlib.contextmanager
def spinning(server: TemporaryServer, scene: Scene) -> Iterator[None]:
    """The server runs a script without an end; at first it is silent, then it says BUSY."""
    scene.hand.command("CONFIG", "SET", "lua-time-limit", "1000")
    with redis.Redis.from_url(server.url, single_connection_client=True) as killer:
        killer.ping()  # while it is busy, the server does not greet new connections
        script = threading.Thread(target=_spin, args=[scene], daemon=True)
        script.start()
        yield
        killer.execute_command("SCRIPT KILL")
        script.join()


def _spin(scene: Scene) -> None:
    with contextlib.suppress(RedisError):
        scene.hand.command("EVAL", "while true do end", 0)


@contextlib.contextmanager
def out_of_connections(server: TemporaryServer, scene: Scene) -> Iterator[None]:
    scene.hand.command("CONFIG", "SET", "maxclients", "2")
    scene.hand.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    yield
    scene.hand.command("CONFIG", "SET", "maxclients", "1000")


OUTAGES = [
    pytest.param(killed, id="d4_killed"),
    pytest.param(read_only, id="d3_read_only"),
    pytest.param(full, id="full"),
    pytest.param(spinning, id="spinning"),
    pytest.param(out_of_connections, id="m1_out_of_connections"),
]
