"""Both clients, and a worker played by hand, on a prefix of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import pytest

from client.faces import BlockingClient
from dtq import Client
from dtq_core.embedded import TemporaryServer, start_temporary
from dtq_core.settings import Settings
from support.hand import Hand

MakeClient = Callable[..., Any]
FACES = {"Client": Client, "AsyncClient": BlockingClient}


@pytest.fixture
def settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Settings of this test; its parameter is the number of partitions."""
    return replace(settings, partitions=getattr(request, "param", 1), retry_timeout=10)


@pytest.fixture(scope="module")
def own_server() -> Iterator[TemporaryServer]:
    """A server that may be hurt; it keeps its data over a restart."""
    with start_temporary(persistence="everysec", port=None) as server:
        yield server


@pytest.fixture
def own_settings(own_server: TemporaryServer, settings: Settings) -> Settings:
    return replace(settings, redis_url=own_server.url)


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Any:
    """The class of a client, blocking and asynchronous in turn."""
    return FACES[request.param]


@pytest.fixture
def make_client(face: Any, settings: Settings) -> Iterator[MakeClient]:
    """Makes clients of this test's deployment, and closes them after it."""
    with ExitStack() as stack:

        def make(url: str | None = None, **overrides: Any) -> Any:
            given = {"prefix": settings.prefix, "partitions": settings.partitions, **overrides}
            return stack.enter_context(closing(face(url or settings.redis_url, **given)))

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> Any:
    return make_client()


@pytest.fixture
def make_hand() -> Iterator[Callable[[Settings], Hand]]:
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(closing(Hand(settings)))


@pytest.fixture
def hand(make_hand: Callable[[Settings], Hand], settings: Settings) -> Hand:
    return make_hand(settings)
