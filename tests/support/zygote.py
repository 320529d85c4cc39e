"""Forks programs from a process that has imported all they need: each starts in milliseconds.

Its arguments are further modules to import. Requests come as lines of JSON on standard input, and
each is answered by one line.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from typing import Any

from dtq_core import failpoints

NEEDED = ["uvloop", "dtq", "dtq_scheduler", "dtq_worker.supervisor"]

_lines: dict[int, socket.socket] = {}
"""Our end of each program's standard input; it stays open for as long as we live."""


def start(module: str, arguments: list[str], environment: dict[str, str], log: str) -> int:
    """Run a module as a program, in a process group of its own; return its process id."""
    ours, its = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for line in [ours, *_lines.values()]:
            line.close()
        sink = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for fd, target in ((its.fileno(), 0), (sink, 1), (sink, 2)):
            os.dup2(fd, target)
        its.close()
        _become(module, arguments, environment)
    its.close()
    _lines[pid] = ours
    return pid


def say(pid: int, text: str) -> None:
    """Write to a program's standard input."""
    _lines[pid].sendall(text.encode())


def hang_up(pid: int) -> None:
    """End a program's standard input."""
    _lines.pop(pid).close()


def poll(pid: int) -> int | None:
    """Return the exit code of a program that has ended, negative for a signal."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _become(module: str, arguments: list[str], environment: dict[str, str]) -> None:
    code = 1
    try:
        os.environ.update(environment)
        failpoints._points = failpoints._parse(os.environ.get("DTQ_FAILPOINTS", ""))
        sys.argv = [module, *arguments]
        warnings.simplefilter("ignore")  # the module is imported already
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in [*NEEDED, *sys.argv[1:]]:
        importlib.import_module(name)
    actions: dict[str, Callable[..., Any]] = {
        "start": start,
        "say": say,
        "hang_up": hang_up,
        "poll": poll,
    }
    for text in sys.stdin:
        name, *arguments = json.loads(text)
        print(json.dumps(actions[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
