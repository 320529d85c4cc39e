"""A Redis server for all tests, and a stage for each."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis
from worker.ledger import check_ledger
from worker.stage import Stage


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dtq") as folder:
        socket = Path(folder) / "r.sock"
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        while not socket.exists():
            time.sleep(0.01)
        yield f"unix://{socket}"
        server.terminate()
        server.wait()


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    made = Stage(redis_url)
    yield made
    await check_ledger(made.raw, made.client.store.partitions, made.accepted)
    await made.close()
