"""A server that takes no outcome for a while: outcomes are kept, and no handler runs again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crash.handlers import linger
from crash.scene import WELL_UNDER_S, Scene
from dtq_core.settings import Settings
from support.eventually import eventually
from support.own_server import OwnServer

TROUBLES = {
    "full": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "read-only": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
}


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[OwnServer]:
    server = OwnServer(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def settings(settings: Settings, own_server: OwnServer) -> Settings:
    return replace(settings, redis_url=own_server.url)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_outcome_is_held_until_the_server_takes_it(
    scene: Scene, own_server: OwnServer, tmp_path: Path, trouble: str
) -> None:
    begin, end = TROUBLES[trouble]
    gate = tmp_path / "gate"
    handle = scene.submit(linger, str(gate))
    worker = scene.worker()
    scene.started(handle)
    own_server.command(*begin)
    gate.touch()
    eventually("the outcome to be held", lambda: "outcomes are held" in worker.log.read_text())
    own_server.command(*end)
    assert handle.result(timeout=WELL_UNDER_S) == 1
    assert scene.starts(handle) == [1]
