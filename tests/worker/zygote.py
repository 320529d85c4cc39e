"""Forks processes from one that has imported everything: each starts in milliseconds.

What runs in a fork is the program of a supervised child, ``dtq_worker.child``, with its orders on
standard input as from a supervisor; or a supervisor. Requests come as lines of JSON on standard
input, and each is answered by one line.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

import uvloop

import worker.handlers
from dtq_worker import child
from worker.supervise import supervise

assert uvloop, worker.handlers

_lines: dict[int, socket.socket] = {}


def _fork(log: str, stdin: int) -> int:
    """Fork; in the child, put the standard streams in place and close all lines."""
    pid = os.fork()
    if pid == 0:
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for fd, target in ((stdin, 0), (sink, 1), (sink, 2)):
            os.dup2(fd, target)
        for line in _lines.values():
            line.close()
    return pid


def spawn(orders: dict[str, Any], env: dict[str, str], log: str) -> int:
    """Start a child of nobody; this process holds its line."""
    line, its_end = socket.socketpair()
    pid = _fork(log, its_end.fileno())
    if pid == 0:
        line.close()
        its_end.close()
        os.environ.update(env)
        child.main()
    its_end.close()
    line.sendall(json.dumps(orders).encode() + b"\n")
    _lines[pid] = line
    return pid


def start_supervisor(modules: list[str], env: dict[str, str], log: str) -> int:
    """Start a supervisor in a process group of its own."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    pid = _fork(log, nothing)
    if pid == 0:
        os.setsid()
        os.environ.clear()
        os.environ.update(env)
        os._exit(supervise(modules))
    os.close(nothing)
    return pid


def poll(pid: int) -> int | None:
    """Return the exit code of a process that has ended, negative for a signal."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def hurry(pid: int) -> None:
    """Do what a supervisor does that is told twice to stop."""
    _lines[pid].sendall(b"!")


def hang_up(pid: int) -> None:
    """Do what the death of a supervisor does."""
    _lines.pop(pid).close()


ACTIONS = {
    "spawn": spawn,
    "supervise": start_supervisor,
    "poll": poll,
    "hurry": hurry,
    "hang_up": hang_up,
}


def main() -> None:
    for text in sys.stdin:
        name, arguments = json.loads(text)
        print(json.dumps(ACTIONS[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
