"""A server of their own for the walks: each step begins with an empty database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dtq_core.embedded import start_temporary
from model.pipe import Pipe, connected


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture(scope="package")
def pipe(url: str) -> Iterator[Pipe]:
    with connected(url) as made:
        yield made
