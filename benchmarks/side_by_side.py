"""What one system does in one round of the comparison."""

from __future__ import annotations

import time
from dataclasses import dataclass

import process_tree
from bench_server import Server
from peer import Peer

IDLE = "start latency idle"
HALF_LOAD = "start latency at half load"
BYTES = 50
"""Of arguments in each task."""
SINGLE = 2_000
MANY = 2_000
MANY_OF = {"dtq": 50_000, "bullmq": 20_000, "rq": 1_000}
"""For some seconds of work, where the usual number is too few or takes too long."""
IDLE_TASKS, IDLE_PAUSE_US = 300, 10_000
HALF_LOAD_S = 3
HALF_LOAD_MOST = 20_000
LATE_S = 30
"""So long are tasks waited for that were submitted at a pace the system should hold."""

Figures = dict[str, float]
Latencies = dict[str, list[int]]


def one_round(peer: Peer, server: Server) -> tuple[Figures, Latencies]:
    """Do every measure once; return figures, and durations of single tasks in ns."""
    figures = _single(peer, server)
    figures |= _with_one_process(peer, server)
    rate = min(figures["submit, tasks/s"], figures["drain, 1 process, tasks/s"]) / 2
    latencies = _latencies(peer, server, rate)
    figures |= _with_two_processes(peer, server)
    return figures, latencies


def _single(peer: Peer, server: Server) -> Figures:
    _empty(peer, server)
    return {"submit, tasks/s": SINGLE / peer.ask("single", SINGLE, BYTES)}


def _with_one_process(peer: Peer, server: Server) -> Figures:
    """Submit many twice: what the second half adds is what a waiting task takes."""
    many = MANY_OF.get(peer.key, MANY)
    _empty(peer, server)
    empty = server.used_bytes()
    peer.ask("bulk", many // 2, BYTES)
    before = server.used_bytes()
    took = peer.ask("bulk", many // 2, BYTES)
    figures = {
        "submit many, tasks/s": many // 2 / took,
        "waiting, bytes/task": (server.used_bytes() - before) / (many // 2),
    }
    figures |= _drain(peer, server, many, 1)
    figures["finished, bytes/task"] = (server.used_bytes() - empty) / many
    return figures


def _with_two_processes(peer: Peer, server: Server) -> Figures:
    many = MANY_OF.get(peer.key, MANY)
    _empty(peer, server)
    peer.ask("bulk", many, BYTES)
    measured = _drain(peer, server, many, 2)
    rate = "drain, 2 processes, tasks/s"
    return {rate: measured[rate]}


@dataclass(frozen=True)
class _Look:
    done: int
    at: float
    worker_s: float
    redis_s: float
    commands: int
    network: int


def _drain(peer: Peer, server: Server, many: int, processes: int) -> Figures:
    """Count between a tenth and nine tenths of the tasks: no start-up, no last, half-full batch."""
    with peer.worker(processes) as pids:
        first = _look(peer, server, pids, many // 10)
        last = _look(peer, server, pids, many * 9 // 10)
        peer.wait_done(many)
    label = f"drain, {processes} process{'es' if processes > 1 else ''}"
    done = last.done - first.done
    return {
        f"{label}, tasks/s": done / (last.at - first.at),
        "worker CPU, µs/task": (last.worker_s - first.worker_s) / done * 1e6,
        "Redis CPU, µs/task": (last.redis_s - first.redis_s) / done * 1e6,
        "Redis commands/task": (last.commands - first.commands) / done,
        "network, bytes/task": (last.network - first.network) / done,
    }


def _look(peer: Peer, server: Server, pids: list[int], wanted: int) -> _Look:
    done, at = peer.wait_done(wanted)
    worker_s = sum(process_tree.cpu_s(pid) for pid in pids)
    return _Look(done, at, worker_s, server.cpu_s(), server.commands(), server.network_bytes())


def _latencies(peer: Peer, server: Server, rate: float) -> Latencies:
    """From the begin of a submit call to the first line of the handler, in one worker process."""
    half_load = min(HALF_LOAD_MOST, int(rate * HALF_LOAD_S))
    found = {}
    for label, tasks, pause_us in (
        (IDLE, IDLE_TASKS, IDLE_PAUSE_US),
        (HALF_LOAD, half_load, int(1e6 / rate)),
    ):
        _empty(peer, server)
        with peer.worker(1):
            peer.ask("bulk", 1, BYTES)
            peer.wait_done(1)
            began = peer.ask("paced", tasks, pause_us)
            started = _all_started(peer, tasks)
        found[label] = [end - begin for begin, end in zip(began, started, strict=True)]
    return found


def _all_started(peer: Peer, tasks: int) -> list[int]:
    end = time.monotonic() + LATE_S
    while not all(started := peer.started_ns(tasks)):
        if time.monotonic() > end:
            missing = started.count(0)
            raise TimeoutError(f"{peer.name}: {missing} of {tasks} tasks did not start")
        time.sleep(0.05)
    return started


def _empty(peer: Peer, server: Server) -> None:
    server.empty()
    peer.forget()
