"""Runs one Redis server for as long as its owner lives. Started by :mod:`dtq_core.embedded`.

It is run by its path, in an interpreter that imports nothing else, so that it starts at once. Its
orders come as one line of JSON on standard input. Anything more there, or its end, means: stop. So
does the loss of its parent, for a child that the owner forked may hold the pipe open. It answers
with one line:

READY   the server answers; ``server.json`` says where
BUSY    another guard keeps a server in this folder
FAILED  the reason, as a JSON string
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from typing import Any

START_LIMIT_S = 60.0
"""How long a server may take to load its data."""
STOP_LIMIT_S = 10.0
"""How long a server may take to stop before it is killed."""
ANSWER_LIMIT_S = 1.0

LOG = "redis.log"
LOG_LINES = 3
MAX_LOG_BYTES = 1_048_576
"""A log longer than this begins anew with the next start."""


class Owner:
    """The process that started this one."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        self._told_to_stop = False
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._told_to_stop = True

    def has_left(self, pause_s: float) -> bool:
        """Wait a moment for the end of the work, and say whether it has come."""
        said, _, _ = select.select([0], [], [], pause_s)
        return bool(said) or self._told_to_stop or os.getppid() != self._pid


def main() -> int:
    """Keep a server until the owner is gone; return the exit code."""
    owner = Owner()
    orders = json.loads(sys.stdin.buffer.raw.readline())  # type: ignore[union-attr]
    try:
        os.chdir(orders["folder"])
        if not take_lock(owner):
            answer("BUSY")
            return 0
        problem = keep_server(orders, owner)
    except OSError as error:
        problem = f"{error.filename or orders['folder']}: {error.strerror}"
    if problem is not None:
        answer("FAILED " + json.dumps(problem))
    return 0 if problem is None else 1


def answer(line: str) -> None:
    """Tell the owner, if it still listens."""
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")


def take_lock(owner: Owner) -> bool:
    """Take the folder for the life of this process, unless a server runs in it.

    While another guard starts or stops its server, wait for it.
    """
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + START_LIMIT_S + STOP_LIMIT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if os.path.exists("server.json") or time.monotonic() > end or owner.has_left(0.01):
                return False
        else:
            return True


def keep_server(orders: dict[str, Any], owner: Owner) -> str | None:
    """Run the server until the owner is gone; return why it could not start, if it could not."""
    remove("server.json")
    if not orders["port"]:
        make_private_folder(os.path.dirname(orders["socket"]))
        end_orphan(orders)
        remove(orders["socket"])
    begin = begin_log()
    server = start(orders["command"])
    try:
        problem = wait_until_ready(server, orders, owner)
        if problem is None:
            answer("READY")
            wait_for_the_end(server, owner)
        elif server.returncode is None:
            server.kill()  # so far it has only read
        else:
            problem += last_lines(begin)
        return problem
    finally:
        remove("server.json")
        stop(server)
        remove(orders["socket"])
        with contextlib.suppress(OSError):  # in use where it is the folder of the server
            os.rmdir(os.path.dirname(orders["socket"]))


def end_orphan(address: dict[str, Any]) -> None:
    """End a server that outlived its guard; two of them would write the same files."""
    end = time.monotonic() + STOP_LIMIT_S
    while pid := int(ask_info(address, "process_id") or 0):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM if time.monotonic() < end else signal.SIGKILL)
        time.sleep(0.02)


def make_private_folder(path: str) -> None:
    """Make a folder that no other user can enter, or find that it is one.

    Raises:
        OSError: if it is not, and cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "is not a folder of this user alone", path)


def begin_log() -> int:
    """Return where the next line of the log will be, in bytes."""
    with open(LOG, "ab") as log:
        if log.tell() > MAX_LOG_BYTES:
            log.truncate(0)
        return os.fstat(log.fileno()).st_size


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start the server; a Ctrl-C at the terminal does not reach it."""
    with open(LOG, "ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def wait_until_ready(
    server: subprocess.Popen[bytes], orders: dict[str, Any], owner: Owner
) -> str | None:
    """Wait for the first answer, and write ``server.json``; return the problem, if there is one."""
    end = time.monotonic() + START_LIMIT_S
    while server.poll() is None:
        if serves(orders, server.pid):
            write_state(server, orders)
            return None
        if time.monotonic() > end:
            return f"it did not answer within {START_LIMIT_S:g} s"
        if owner.has_left(0.005):
            return "nobody waits for it any more"
    return f"it ended (exit code {server.returncode}): "


def serves(address: dict[str, Any], pid: int) -> bool:
    """Say whether this very server is there for clients.

    One that still loads is not. One that runs a long script is, though it does not say who it is.
    """
    said = ask(address, b"PING")
    return said.startswith(b"-BUSY") or (
        said.startswith(b"+PONG") and ask_info(address, "process_id") == str(pid)
    )


def ask_info(address: dict[str, Any], name: str) -> str:
    """Return what a server says of itself, empty for nothing."""
    for line in ask(address, b"INFO server").decode("ascii", "replace").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value
    return ""


def ask(address: dict[str, Any], command: bytes) -> bytes:
    """Send one inline command and return the first part of its answer, empty for none."""
    family, where = (
        (socket.AF_INET, ("127.0.0.1", address["port"]))
        if address["port"]
        else (socket.AF_UNIX, address["socket"])
    )
    with contextlib.suppress(OSError), socket.socket(family) as connection:
        connection.settimeout(ANSWER_LIMIT_S)
        connection.connect(where)
        connection.sendall(command + b"\r\n")
        return connection.recv(65_536)
    return b""


def write_state(server: subprocess.Popen[bytes], orders: dict[str, Any]) -> None:
    """Say where the server is, all at once or not at all."""
    state = {
        "url": orders["url"],
        "pid": server.pid,
        "version": ask_info(orders, "redis_version"),
        "guard": os.getpid(),
        "owner": orders["owner"],
    }
    with open("server.json.new", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace("server.json.new", "server.json")


def wait_for_the_end(server: subprocess.Popen[bytes], owner: Owner) -> None:
    """Wait until the owner is gone, or the server is."""
    while server.poll() is None and not owner.has_left(0.1):
        pass


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server in order, or by force."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def remove(*paths: str) -> None:
    """Remove files that may not be there."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


def last_lines(begin: int) -> str:
    """Return the end of the log as one line.

    Args:
        begin: where this run begins in the log, in bytes.
    """
    with open(LOG, "rb") as file:
        file.seek(begin)
        lines = file.read().decode("utf-8", "replace").splitlines()
    # Advice on how to tune the machine is no reason to end.
    warnings = [text for _, _, text in (line.partition(" # ") for line in lines) if text]
    reasons = [text for text in warnings if not text.startswith("WARNING")] or lines
    return " | ".join(reasons[-LOG_LINES:]) or "it wrote no log"


if __name__ == "__main__":
    sys.exit(main())
