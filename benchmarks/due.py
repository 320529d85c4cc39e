"""The speed of the scheduler: how late delayed tasks start, how fast many are promoted."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import redis

from bench_server import Server
from dtq import Client
from measures import FIFTY_BYTES, HERE, environment_of, percentiles, worker
from workload import noop, started_at_ms

PROBE_S = 0.005
SHORTEST_S, LONGEST_S = 0.05, 0.5
SOON_S = 3.0


def lateness(client: Client, server: Server, tasks: int) -> dict[str, float]:
    """From the time at which a delayed task is due to the start of its handler, on an idle machine.

    Both are times of the same host; the due time is by Redis' clock, the start by the worker's.
    """
    server.empty()
    chance = random.Random(1)
    with worker(client):
        client.submit(noop, "").result(30)
        handles = []
        for _ in range(tasks):
            delay = chance.uniform(SHORTEST_S, LONGEST_S)
            handles.append(client.submit(started_at_ms.options(delay=delay)))
            time.sleep(0.02)
        late_ms = []
        for handle in handles:
            record = client.store.keys_of(handle.id).task(handle.id)
            due_ms = client.store.link.raw("HGET", record, "due_ms")
            late_ms.append(handle.result(10) - int(due_ms))
    return percentiles("delayed start, late by", [int(ms * 1e6) for ms in late_ms])


def promotion(client: Client, server: Server, tasks: int) -> dict[str, float]:
    """How fast a scheduler moves tasks that are due in the same second, and a PING beside it."""
    server.empty()
    begin = time.monotonic()
    due = begin + SOON_S + tasks / 20_000
    calls = [(FIFTY_BYTES,)] * 10_000
    for _ in range(tasks // len(calls)):
        client.submit_many(noop.options(delay=due - time.monotonic()), calls)
    with scheduler(client), pings(client) as taken:
        while (first := _scheduled(client)) == tasks:
            time.sleep(0.001)
        since = time.monotonic()
        while _scheduled(client):
            time.sleep(0.005)
        took = time.monotonic() - since
    return {
        "promotion of many due at once, tasks/s": first / took,
        **percentiles("PING beside it", taken),
    }


def _scheduled(client: Client) -> int:
    return int(client.store.link.raw("ZCARD", client.store.partitions.all[0].delay_schedule))


@contextlib.contextmanager
def scheduler(client: Client) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dtq_cli.main", "scheduler"], env=environment_of(client), cwd=HERE
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def pings(client: Client) -> Iterator[list[int]]:
    """Durations of a PING every 5 ms, from a connection of its own."""
    taken: list[int] = []
    ended = threading.Event()

    def probe() -> None:
        with redis.Redis.from_url(client.store.url) as connection:
            while not ended.wait(PROBE_S):
                begin = time.monotonic_ns()
                connection.ping()
                taken.append(time.monotonic_ns() - begin)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()
