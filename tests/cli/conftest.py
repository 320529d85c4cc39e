from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminal import Terminal
from dtq_core.embedded import start_temporary
from dtq_core.store import Store


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


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


@pytest.fixture(params=[1, 3], ids=["one partition", "three partitions"])
def deployment(
    redis_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Terminal]:
    """A deployment of one partition, and one of several, in which nothing runs."""
    made = Terminal(tmp_path, redis_url, partitions=request.param)
    yield made
    made.close()


@pytest.fixture
def store(deployment: Terminal) -> Store:
    return deployment.client.store
