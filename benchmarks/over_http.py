"""Submissions over HTTP: one API process on one core, the load and Redis on the others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bench_server import Server
from dtq import Client
from measures import FIFTY_BYTES, environment_of

CONNECTIONS = 32
BATCH = 1_000


@contextmanager
def api_process(client: Client) -> Iterator[tuple[str, int]]:
    """Run ``dtq api`` on the first core; yields its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dtq_cli.main", "api", "--port", "0"],
        env=environment_of(client) | {"DTQ_LOG_LEVEL": "info", "DTQ_LOG_FORMAT": "json"},
        stderr=subprocess.PIPE,
        text=True,
    )
    os.sched_setaffinity(process.pid, {0})
    try:
        assert process.stderr is not None
        url = urlsplit(json.loads(process.stderr.readline())["url"])
        yield url.hostname or "", url.port or 0
    finally:
        process.terminate()
        process.wait()


def single(client: Client, server: Server, requests: int) -> dict[str, float]:
    """Submit tasks one by one, over connections that are kept."""
    server.empty()
    body = {"name": "bench.nothing", "args": [FIFTY_BYTES]}
    with api_process(client) as address:
        took_s = asyncio.run(_load(address, "/v1/tasks", body, requests, CONNECTIONS, b"201"))
    return {"HTTP, single submissions/s": requests / took_s}


def batch(client: Client, server: Server, tasks: int) -> dict[str, float]:
    """Submit tasks in batches of a thousand."""
    server.empty()
    task = {"name": "bench.nothing", "args": [FIFTY_BYTES]}
    requests = max(1, tasks // BATCH)
    with api_process(client) as address:
        body = {"tasks": [task] * BATCH}
        took_s = asyncio.run(_load(address, "/v1/tasks/batch", body, requests, 4, b"200"))
    return {"HTTP, tasks/s in batches": requests * BATCH / took_s}


async def _load(
    address: tuple[str, int],
    path: str,
    body: object,
    requests: int,
    connections: int,
    wanted: bytes,
) -> float:
    """Send requests, each when the one before on its connection is answered; return the seconds."""
    text = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    left = iter(range(requests))

    async def one() -> None:
        reader, writer = await asyncio.open_connection(*address, limit=2**24)
        for _ in left:
            writer.write(head.encode() + text)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 " + wanted), answer
            length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
        writer.close()

    began_s = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(min(connections, requests))))
    return time.perf_counter() - began_s
