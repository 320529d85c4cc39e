"""How long a task waits for its second start when every process of its worker is killed.

Each system has its default settings and a server of its own; all are watched at once, because some
take minutes. A task that does not start again within the patience counts as never.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from pathlib import Path

import process_tree
from dtq_core.embedded import start_temporary
from peer import FIRST_TASK_S, Peer, every_peer

PATIENCE_S = 330
NEVER = float("inf")
"""Not within the patience."""
NOT_STARTED_YET = "redis://127.0.0.1:1"
"""Where nothing listens: describing a system needs a URL, but no server."""


def measure(redis_server: str | None, wanted: set[str]) -> dict[str, float]:
    """Return, for each system, the seconds from the kill to the second start."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dtq-bench-")))
        peers = every_peer(NOT_STARTED_YET, folder, wanted)
        for peer in peers:
            options = {"redis_server": redis_server, "port": None}
            redis = start_temporary(folder / f"redis-{peer.key}", **options)
            peer.url = stack.enter_context(redis).url
        killed = {peer.key: _kill_within_a_task(peer) for peer in peers}
        for peer in peers:
            for process in peer.start("worker-default", 1):
                stack.callback(process_tree.kill, process)
        _wait(peers)
        return {peer.name: _second_start_s(peer, killed[peer.key]) for peer in peers}


def _kill_within_a_task(peer: Peer) -> int:
    """Return when the worker was killed, in ns of the clock that the handlers use."""
    processes = peer.start("worker-default", 1)
    peer.ask("sleeper")
    end = time.monotonic() + FIRST_TASK_S
    while not peer.slept_ns():
        if time.monotonic() > end:
            raise TimeoutError(f"{peer.name} did not start the task; see {peer.folder}")
        time.sleep(0.01)
    killed = time.monotonic_ns()
    _kill(processes)
    return killed


def _kill(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process_tree.kill(process)


def _wait(peers: list[Peer]) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and not all(len(peer.slept_ns()) > 1 for peer in peers):
        time.sleep(0.2)


def _second_start_s(peer: Peer, killed_ns: int) -> float:
    later = [at for at in peer.slept_ns() if at > killed_ns]
    return (later[0] - killed_ns) / 1e9 if later else NEVER
