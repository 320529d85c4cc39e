"""A server of the test's own that may be hurt, and a deployment on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtq import Client
from dtq_core.embedded import TemporaryServer, start_temporary
from dtq_core.settings import Settings
from support.programs import Zygote
from support.scene import Scene

VISIBILITY_S = 1.0
HANDLERS = "faults.handlers"


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote(HANDLERS)
    yield made
    made.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TemporaryServer]:
    with start_temporary(tmp_path, persistence="always") as made:
        yield made


@pytest.fixture
def redis_url(server: TemporaryServer) -> str:
    """Where the programs and the client look for the server."""
    return server.url


@pytest.fixture
def settings(redis_url: str) -> Settings:
    return Settings(
        redis_url=redis_url,
        processes=2,
        concurrency=20,
        visibility_timeout=VISIBILITY_S,
        reaper_interval=0.2,
        leader_lease=1.0,
        connect_timeout=0.5,
        retry_timeout=30,
        log_format="json",
    )


@pytest.fixture
def scene(settings: Settings, zygote: Zygote, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(settings, zygote, HANDLERS, tmp_path)
    made.client.close()
    made.client = Client(settings.redis_url, connect_timeout=0.5, retry_timeout=30)
    with contextlib.closing(made):
        yield made
