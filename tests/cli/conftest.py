from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminal import Terminal


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dtq") as folder:
        socket = Path(folder) / "r.sock"
        server = subprocess.Popen(
            [
                "redis-server",
                "--port",
                "0",
                "--unixsocket",
                str(socket),
                "--save",
                "",
                "--dir",
                folder,
            ],
            stdout=subprocess.DEVNULL,
        )
        while not socket.exists():
            time.sleep(0.01)
        yield f"unix://{socket}"
        server.terminate()
        server.wait()


@pytest.fixture
def terminal(redis_url: str, tmp_path: Path) -> Iterator[Terminal]:
    """A deployment of the test's own, in which nothing runs yet."""
    made = Terminal(tmp_path, redis_url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shop(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A deployment in which a worker runs, shared by the tests of a file."""
    made = Terminal(tmp_path_factory.mktemp("shop"), redis_url)
    made.start_worker()
    yield made
    made.close()
