"""Runs one Redis server for as long as its owner lives. Started by :mod:`dtq_core.embedded`.

It is run by its path, in an interpreter that imports nothing else, so that it starts at once. Its
orders come as one line of JSON on standard input, which then stays open: its end means that the
owner has stopped, or has been killed, and the server ends with it. It answers with one line:

READY   the server answers; ``server.json`` says where
BUSY    another guard keeps a server in this folder
FAILED  the reason, as a JSON string
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from typing import Any

START_LIMIT_S = 60.0
"""How long a server may take to load its data."""
STOP_LIMIT_S = 10.0
LOG_LINES = 5


def main() -> int:
    """Keep a server until the owner is gone; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    orders = json.loads(sys.stdin.buffer.raw.readline())  # type: ignore[union-attr]
    os.chdir(orders["folder"])
    lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        answer("BUSY")
        return 0
    remove(orders["socket"], "server.json")
    server = start(orders)
    try:
        problem = wait_until_ready(server, orders)
        if problem is not None:
            answer("FAILED " + json.dumps(problem))
            return 1
        answer("READY")
        wait_for_the_end(server)
    finally:
        remove("server.json")
        stop(server)
        remove(orders["socket"])
    return 0


def answer(line: str) -> None:
    """Tell the owner, if it still listens."""
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")


def start(orders: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start the server; a Ctrl-C at the terminal does not reach it."""
    return subprocess.Popen(
        orders["command"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_until_ready(server: subprocess.Popen[bytes], orders: dict[str, Any]) -> str | None:
    """Wait for the first answer, and write ``server.json``; return the problem, if there is one."""
    end = time.monotonic() + START_LIMIT_S
    while server.poll() is None:
        if ask(orders, b"PING").startswith(b"+PONG"):
            write_state(server, orders)
            return None
        if time.monotonic() > end:
            return f"it did not answer within {START_LIMIT_S:g} s"
        time.sleep(0.005)
    return f"it ended at once (exit code {server.returncode}): {last_lines('redis.log')}"


def ask(orders: dict[str, Any], command: bytes) -> bytes:
    """Send one inline command and return the first part of its answer, empty for none."""
    family, address = (
        (socket.AF_INET, ("127.0.0.1", orders["port"]))
        if orders["port"]
        else (socket.AF_UNIX, orders["socket"])
    )
    with contextlib.suppress(OSError), socket.socket(family) as connection:
        connection.settimeout(1)
        connection.connect(address)
        connection.sendall(command + b"\r\n")
        return connection.recv(65_536)
    return b""


def write_state(server: subprocess.Popen[bytes], orders: dict[str, Any]) -> None:
    """Say where the server is, all at once or not at all."""
    info = ask(orders, b"INFO server").decode("ascii", "replace")
    version = next(
        (line[14:] for line in info.splitlines() if line.startswith("redis_version:")), ""
    )
    state = {
        "url": orders["url"],
        "pid": server.pid,
        "version": version,
        "guard": os.getpid(),
        "owner": orders["owner"],
    }
    with open("server.json.new", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace("server.json.new", "server.json")


def wait_for_the_end(server: subprocess.Popen[bytes]) -> None:
    """Wait until the owner is gone, or the server is."""
    while server.poll() is None:
        readable, _, _ = select.select([0], [], [], 0.1)
        if readable and not os.read(0, 4096):
            return


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


def last_lines(path: str) -> str:
    """Return the end of the server's log as one line."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()[-LOG_LINES:]
    except OSError:
        return "it wrote no log"
    return " | ".join(line.strip() for line in lines if line.strip())


if __name__ == "__main__":
    sys.exit(main())
