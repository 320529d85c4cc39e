from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.site import Site
from dtq_core.embedded import start_temporary


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture(scope="module")
def site(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A deployment with a worker and an API, shared by the tests of a file."""
    made = Site(tmp_path_factory.mktemp("site"), redis_url)
    made.start_worker()
    yield made
    made.close()


@pytest.fixture
def lonely(redis_url: str, tmp_path: Path) -> Iterator[Site]:
    """A deployment of the test's own, in which nothing runs yet."""
    made = Site(tmp_path, redis_url)
    yield made
    made.close()
