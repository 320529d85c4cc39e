"""What is measured of dtq. Each function empties the server first and returns plain figures."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import process_tree
from bench_server import Server
from dtq import Client
from workload import noop, started_ns

FIFTY_BYTES = "x" * 46
"""With the quotes and brackets around it, an argument of fifty bytes."""
PAUSE_S = 0.01
"""Between two tasks, for everything to be idle again."""
EVENTS = 12_000
"""More than the stream of events keeps."""
HERE = Path(__file__).parent


def bulk_submission(client: Client, server: Server, tasks: int) -> dict[str, float]:
    server.empty()
    calls = [(FIFTY_BYTES,)] * tasks
    cpu = server.cpu_s()
    begin = time.perf_counter()
    client.submit_many(noop, calls)
    took = time.perf_counter() - begin
    return {
        "submit_many, tasks/s": tasks / took,
        "submit_many, Redis CPU µs/task": (server.cpu_s() - cpu) / tasks * 1e6,
    }


def single_submission(client: Client, server: Server, tasks: int) -> dict[str, float]:
    server.empty()
    begin = time.perf_counter()
    for _ in range(tasks):
        client.submit(noop, FIFTY_BYTES)
    return {"submit, tasks/s": tasks / (time.perf_counter() - begin)}


def bare_round_trips(client: Client, tasks: int) -> dict[str, float]:
    begin = time.perf_counter()
    for _ in range(tasks):
        client.store.link.command("PING")
    return {"bare round trip (PING), calls/s": tasks / (time.perf_counter() - begin)}


def memory(client: Client, server: Server, tasks: int) -> dict[str, float]:
    """Bytes of Redis memory for a task with fifty bytes of arguments; events are capped."""
    server.empty()
    client.submit_many(noop, [(FIFTY_BYTES,)] * EVENTS)
    _finish(client, server, EVENTS)  # the stream of events is full by now
    before = server.used_bytes()
    client.submit_many(noop, [(FIFTY_BYTES,)] * tasks)
    waiting = server.used_bytes()
    _finish(client, server, EVENTS + tasks)
    return {
        "memory, bytes/waiting task": (waiting - before) / tasks,
        "memory, bytes/finished task": (server.used_bytes() - before) / tasks,
    }


def _finish(client: Client, server: Server, tasks: int) -> None:
    with worker(client):
        _wait_until(server, tasks)


def drain(client: Client, server: Server, tasks: int, label: str) -> dict[str, float]:
    """How fast one worker process empties a queue, from a tenth of the tasks to nine tenths."""
    server.empty()
    client.submit_many(noop, [(FIFTY_BYTES,)] * tasks)
    with worker(client) as pid:
        first = _wait_until(server, tasks // 10)
        cpu, redis_cpu = process_tree.cpu_s(pid), server.cpu_s()
        last = _wait_until(server, tasks * 9 // 10)
        cpu, redis_cpu = process_tree.cpu_s(pid) - cpu, server.cpu_s() - redis_cpu
    done = last[0] - first[0]
    return {
        f"drain of {label}, tasks/s": done / (last[1] - first[1]),
        f"drain of {label}, worker CPU µs/task": cpu / done * 1e6,
        f"drain of {label}, Redis CPU µs/task": redis_cpu / done * 1e6,
    }


def start_latency(client: Client, server: Server, tasks: int) -> dict[str, float]:
    """From the begin of a submit call to the start of the handler in an idle worker."""
    server.empty()
    with worker(client):
        client.submit(started_ns).result(30)
        submitted = []
        for _ in range(tasks):
            time.sleep(PAUSE_S)
            submitted.append((time.monotonic_ns(), client.submit(started_ns)))
        # Asking for a result takes time from the worker: that comes when all have started.
        taken = [handle.result(10) - begin for begin, handle in submitted]
    return percentiles("start latency idle", taken)


def percentiles(label: str, taken_ns: list[int]) -> dict[str, float]:
    """The middle, and what the slowest hundredth and thousandth of some durations exceed."""
    ordered = sorted(taken_ns)
    return {
        f"{label}, p{share * 100:g} ms": ordered[int(len(ordered) * share)] / 1e6
        for share in (0.5, 0.99, 0.999)
    }


def environment_of(client: Client) -> dict[str, str]:
    """What a process of the client's deployment is given."""
    return {
        **os.environ,
        "DTQ_REDIS_URL": client.store.url,
        "DTQ_LOG_LEVEL": "warning",
        "PYTHONPATH": str(HERE),
    }


@contextlib.contextmanager
def worker(client: Client, processes: int = 1, queues: Sequence[str] = ()) -> Iterator[int]:
    """A supervised worker, all of whose processes are up; yields the id of the supervisor."""
    command = [sys.executable, "-m", "dtq_cli.main", "worker", "workload", "-p", str(processes)]
    for queue in queues:
        command += ["--queue", queue]
    process = subprocess.Popen(command, env=environment_of(client), cwd=HERE)
    try:
        _wait_for_workers(client, processes)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_for_workers(client: Client, wanted: int) -> None:
    end = time.monotonic() + 30
    while client.store.link.command("ZCARD", "dtq:workers") < wanted:
        if time.monotonic() > end:
            raise TimeoutError(f"{wanted} workers did not come up within 30 s")
        time.sleep(0.005)


def _wait_until(server: Server, wanted: int) -> tuple[int, float]:
    """Wait until so many tasks are done; return how many, and when that was seen."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        done = server.succeeded()
        if done >= wanted:
            return done, time.perf_counter()
        time.sleep(0.01)
    raise TimeoutError(f"{wanted} tasks were not done within 120 s")
