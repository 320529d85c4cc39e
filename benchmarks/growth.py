"""What becomes of the rates of dtq as a deployment grows, one dimension at a time.

The queues are paused while tasks are submitted to a worker that is up already; the rate counts from
the first tenth to the last of what is drained, so that no start and no submission is in it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench_server import Server
from dtq import Client
from dtq_client.operating.pausing import pause, resume
from dtq_core.embedded import start_temporary
from measures import FIFTY_BYTES, worker
from workload import noop

DRAINED = 50_000
"""Of longer queues, this many are drained."""
WAITING = (1_000, 100_000, 1_000_000)
QUEUES = (1, 10, 100)
PAYLOADS = {"100 B": (100, 20_000), "10 kB": (10_000, 10_000), "1 MB": (1_000_000, 200)}
"""Of each size: its bytes, and how many tasks are submitted and drained."""
PROCESSES = (1, 2, 4, 8)
PERSISTENCE = ("no", "everysec", "always")
PATIENCE_S = 120

Figures = dict[str, float]


def measure(client: Client, server: Server, redis_server: str | None, scale: float) -> Figures:
    """Run all of them; ``scale`` shortens them for a quick look."""

    def scaled(tasks: int, least: int = 1_000) -> int:
        return max(least, int(tasks * scale))

    figures: Figures = {}
    for waiting in WAITING:
        waiting = scaled(waiting)
        bursts = max(1, scaled(DRAINED) // waiting)
        figures[f"drain, {waiting:,} waiting, tasks/s"] = _drain(
            client, server, ["default"], waiting, bursts=bursts
        )[1]
    for count in QUEUES:
        queues = [f"queue-{number}" for number in range(count)]
        label = f"drain, {count} queue{'s' if count > 1 else ''}, tasks/s"
        figures[label] = _drain(client, server, queues, scaled(DRAINED))[1]
    for label, (size, tasks) in PAYLOADS.items():
        rates = _drain(client, server, ["default"], scaled(tasks, 100), text="x" * size)
        figures[f"submit many, payload of {label}, tasks/s"] = rates[0]
        figures[f"drain, payload of {label}, tasks/s"] = rates[1]
    for processes in PROCESSES:
        label = f"drain, {processes} process{'es' if processes > 1 else ''}, tasks/s"
        figures[label] = _drain(client, server, ["default"], scaled(DRAINED), processes)[1]
    return figures | _persistence(redis_server, scaled(DRAINED))


def _persistence(redis_server: str | None, tasks: int) -> Figures:
    figures = {}
    for persistence in PERSISTENCE:
        options = {"redis_server": redis_server, "persistence": persistence}
        with (
            tempfile.TemporaryDirectory(prefix="dtq-bench-") as folder,
            start_temporary(Path(folder), **options) as redis,
            Client(redis.url) as client,
        ):
            submitted, drained = _drain(client, Server(client), ["default"], tasks)
        figures[f"submit many, appendfsync {persistence}, tasks/s"] = submitted
        figures[f"drain, appendfsync {persistence}, tasks/s"] = drained
    return figures


def _drain(
    client: Client,
    server: Server,
    queues: list[str],
    tasks: int,
    processes: int = 1,
    text: str = FIFTY_BYTES,
    bursts: int = 1,
) -> tuple[float, float]:
    """Return the rate of submission and that of the drain, over all bursts."""
    server.empty()
    submitting_s = draining_s = drained = 0.0
    each = tasks // len(queues)
    with worker(client, processes, queues):
        for queue in queues:  # what was never used cannot be paused
            client.submit(noop.options(queue=queue), "")
        _wait_until(server, queues, len(queues))
        for burst in range(bursts):
            before = len(queues) + burst * each * len(queues)
            submitting_s += _submit(client, queues, each, text)
            resume(client.store, queues, "bench")
            most = min(tasks, DRAINED)
            first = _wait_until(server, queues, before + most // 10)
            last = _wait_until(server, queues, before + most * 9 // 10)
            drained += last[0] - first[0]
            draining_s += last[1] - first[1]
            if burst + 1 < bursts:
                _wait_until(server, queues, before + each * len(queues))
    return bursts * each * len(queues) / submitting_s, drained / draining_s


def _submit(client: Client, queues: list[str], each: int, text: str) -> float:
    """Fill the queues, which stay paused; return how long that took."""
    pause(client.store, queues, "bench")
    begin = time.perf_counter()
    for queue in queues:
        client.submit_many(noop.options(queue=queue), [(text,)] * each)
    return time.perf_counter() - begin


def _wait_until(server: Server, queues: list[str], wanted: int) -> tuple[int, float]:
    """Wait until so many tasks are done; return how many, and when that was seen."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        done = server.succeeded(queues)
        if done >= wanted:
            return done, time.perf_counter()
        time.sleep(0.002)
    raise TimeoutError(f"{wanted} tasks were not done within {PATIENCE_S} s")
