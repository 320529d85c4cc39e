"""The folder ``.dtq`` of a project, where its private server lives and says how it is reached."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from dtq_core import embedded_guard
from dtq_core.errors import EmbeddedServerError

MAX_SOCKET_PATH_BYTES = 100
"""The kernel's limit is 104 (macOS) or 108 (Linux)."""

_TCP = "redis://127.0.0.1:"
_UNIX = "unix://"


class State(NamedTuple):
    """What ``server.json`` says of a running server."""

    url: str
    pid: int
    version: str
    owner: int


def home_of(folder: Path) -> Path:
    """Return where the server of a project lives, whether it is there or not.

    Args:
        folder: of the project.
    """
    return (folder / ".dtq").resolve()


def make_home(folder: Path) -> Path:
    """Return where the server of a project lives, made where it is missing, closed to others.

    Args:
        folder: of the project.

    Raises:
        EmbeddedServerError: if it cannot be made or written.
    """
    home = home_of(folder)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if home.stat().st_mode & 0o077:
            home.chmod(0o700)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "ascii")
    except OSError as error:
        raise EmbeddedServerError(
            f"{home} cannot be written ({error.strerror}): run in a folder of your own, "
            "or set DTQ_REDIS_URL"
        ) from None
    return home


def socket_path(home: Path) -> str:
    """Return the path of the server's socket, the same with every start.

    It is in the folder, unless that has too long a name for a socket or one that a URL cannot
    spell; then in a private folder beside all temporary files, or beside the system's where these
    lie too deep as well.
    """
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    beside = f"dtq-{os.getuid()}-{digest}"
    folders = [str(home), f"{tempfile.gettempdir()}/{beside}", f"/tmp/{beside}"]
    return next(path for folder in folders if _fits(path := f"{folder}/redis.sock"))


def _fits(path: str) -> bool:
    try:
        return len(path.encode()) <= MAX_SOCKET_PATH_BYTES
    except UnicodeEncodeError:
        return False


def url_of(home: Path, port: int) -> str:
    """Return the URL of the server: on this TCP port, or with 0 on its socket."""
    return f"{_TCP}{port}" if port else _UNIX + quote(socket_path(home))


def address_of(url: str) -> dict[str, Any]:
    """Return the address in a URL as the guard takes it.

    Raises:
        ValueError: for a server that is not on this machine.
    """
    if url.startswith(_UNIX):
        return {"port": 0, "socket": unquote(url.removeprefix(_UNIX))}
    return {"port": int(url.removeprefix(_TCP)), "socket": ""}


def read_state(home: Path) -> State:
    """Return what ``server.json`` says.

    Raises:
        OSError: if it is not there.
        ValueError, KeyError, TypeError: if it says something else.
    """
    said = json.loads((home / "server.json").read_text("utf-8"))
    return State(str(said["url"]), int(said["pid"]), str(said["version"]), int(said["owner"]))


def find_state(home: Path) -> State | None:
    """Return what ``server.json`` says, if that server answers now and will stay for a while."""
    try:
        state = read_state(home)
        address = address_of(state.url)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    stays = _is_alive(state.owner)  # or it is about to end
    return state if stays and embedded_guard.serves(address, state.pid) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
