"""Processes that own a private server, and questions about processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from dtq_core.connections import Link
from dtq_core.settings import Settings

OWN = """
import os, subprocess, sys, time
from pathlib import Path
from dtq_core.embedded import EmbeddedServer, find_running

folder = Path(sys.argv[1])
"""

START = f"""{OWN}
server = EmbeddedServer.start(folder)
print(server.pid, server.owned, flush=True)
"""

START_AND_WAIT = f"""{START}
sys.stdin.read()
server.stop()
"""


@contextlib.contextmanager
def running(code: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process that knows the folder, leads a process group, and is not left over."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> list[str]:
    """The words of the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().split()


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL a process, and wait until it is gone."""
    process.kill()
    process.wait()


def is_gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has asked for its exit code."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return not state or state.startswith("Z")


def guard_of(folder: Path) -> int:
    """The process id of the guard that keeps the server of a folder."""
    return int(json.loads((folder / ".dtq" / "server.json").read_text())["guard"])


@contextlib.contextmanager
def link_to(url: str) -> Iterator[Link]:
    """A connection to a server."""
    link = Link(Settings(redis_url=url), url)
    try:
        yield link
    finally:
        link.close()
