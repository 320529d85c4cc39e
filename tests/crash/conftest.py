"""A scene for each test, settled by the ledger at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dtq_core.settings import Settings
from support.programs import Zygote
from support.scene import VISIBILITY_S, Scene

MOST_STARTS = range(4)
"""How often a handler may start, whatever is killed; tests are more exact."""


@pytest.fixture
def settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Settings of this test; its parameter is the number of partitions."""
    return replace(
        settings,
        partitions=getattr(request, "param", 1),
        retry_timeout=10,
        visibility_timeout=VISIBILITY_S,
        reaper_interval=0.2,
        concurrency=4,
        processes=1,
        scheduler_tick=0.02,
        leader_lease=0.5,
        verify_interval=0.2,
    )


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote("crash.handlers")
    yield made
    made.close()


@pytest.fixture
def scene(settings: Settings, zygote: Zygote, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(settings, zygote, "crash.handlers", tmp_path)
    try:
        yield made
        made.settle(MOST_STARTS)
    finally:
        made.close()
