from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.site import Site
from dashboard.desk import Desk
from dtq_core.embedded import start_temporary


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture
def site(redis_url: str, tmp_path: Path) -> Iterator[Site]:
    """A deployment of the test's own, in which nothing runs yet."""
    made = Site(tmp_path, redis_url)
    yield made
    made.close()


@pytest.fixture
def desk(site: Site) -> Iterator[Desk]:
    """A browser's place before the dashboard, in which nobody has to sign in."""
    made = Desk(site)
    yield made
    made.close()
