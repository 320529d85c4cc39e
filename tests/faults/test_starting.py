"""Services that are started together with a server that still loads its data."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtq_core.embedded import TemporaryServer, start_temporary
from dtq_core.errors import RedisBusyError, RedisError
from faults.load import Load
from faults.recovery import goes_on, settles
from faults.watch import Watch
from support.eventually import eventually
from support.scene import Scene

_FOREIGN_KEYS = 20_000
_SLOWLY = ("--key-load-delay", "50")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TemporaryServer]:
    """One that takes its time for each key that it loads, and answers LOADING meanwhile."""
    with start_temporary(tmp_path, persistence="always", config=_SLOWLY) as made:
        yield made


def test_d4_a_worker_and_a_client_wait_for_a_server_that_loads(
    server: TemporaryServer, scene: Scene
) -> None:
    text = "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, string.rep('x', 100)) end"
    scene.hand.command("EVAL", text, 0, _FOREIGN_KEYS)
    server.kill()
    loading = threading.Thread(target=server.restart, daemon=True)
    loading.start()
    eventually("the server to load", lambda: _loads(scene))
    crew = scene.crew(connect_timeout=5)
    with Load(scene):
        watch = Watch(crew)
        eventually(
            "a worker that waits", lambda: "waiting for Redis" in crew.log.read_text(), limit_s=5
        )
        loading.join()
        watch.check_silence()
        goes_on(scene, crew)
    settles(scene)


def _loads(scene: Scene) -> bool:
    try:
        scene.hand.command("PING")
    except RedisError as error:
        return isinstance(error, RedisBusyError)
    return False
