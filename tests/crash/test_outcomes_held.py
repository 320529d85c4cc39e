"""A server that takes no outcome for a while: outcomes are kept, and no handler runs again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.handlers import linger
from dtq_core.embedded import start_temporary
from support.eventually import eventually
from support.scene import WELL_UNDER_S, Scene

TROUBLES = {
    "closed to it": (
        ("ACL", "SETUSER", "default", "-@all", "+acl", "+ping"),
        ("ACL", "SETUSER", "default", "+@all"),
    ),
    "read-only": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
}


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A server that may be hurt."""
    with start_temporary() as server:
        yield server.url


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_outcome_is_held_until_the_server_takes_it(
    scene: Scene, tmp_path: Path, trouble: str
) -> None:
    begin, end = TROUBLES[trouble]
    gate = tmp_path / "gate"
    handle = scene.submit(linger, str(gate))
    worker = scene.worker()
    scene.started(handle)
    scene.hand.command(*begin)
    gate.touch()
    eventually("the outcome to be held", lambda: "outcomes are held" in worker.log.read_text())
    scene.hand.command(*end)
    assert handle.result(timeout=WELL_UNDER_S) == 1
    assert scene.starts(handle) == [1]
