"""For all tests: one Redis server a run, a prefix of each test's own, and a Ctrl-C that arrives.

A shell starts what runs in the background with SIGINT ignored, and that is inherited.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from dtq_core.embedded import start_temporary
from dtq_core.settings import Settings
from dtq_core.store import Store
from support.keys import check_keys

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "ledger_checked: at its end, every key has its owner and its time to live"
    )


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture
def settings(redis_url: str) -> Settings:
    return Settings(redis_url=redis_url, prefix=f"t{next(_numbers)}", retry_timeout=0)


@pytest.fixture
def store(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Store]:
    with closing(Store(settings)) as made:
        yield made
        if request.node.get_closest_marker("ledger_checked"):
            check_keys(made)
