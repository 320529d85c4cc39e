"""A server without memory refuses new tasks, and nothing else: what it has is worked off."""

from __future__ import annotations

import pytest

from dtq_core.embedded import TemporaryServer
from dtq_core.errors import RedisFullError
from faults.handlers import fail_once, nap
from faults.outages import full
from faults.recovery import settles
from support.scene import Scene


def test_a_full_server_is_drained_while_it_refuses_new_tasks(
    server: TemporaryServer, scene: Scene
) -> None:
    scene.submit_many(nap, 50, 0.01)
    retried, delayed = scene.submit(fail_once), scene.submit(nap.options(delay=0.5))
    doomed = scene.submit(nap.options(delay=600))
    expiring = scene.submit(nap.options(delay=600, ttl=0.5))
    with full(server, scene):
        with pytest.raises(RedisFullError):
            scene.client.submit(nap)
        doomed.cancel()
        scene.crew()
        assert [retried.result(10), delayed.result(10)] == [2, 1]
        settles(scene)
    assert expiring.info().status == "EXPIRED"
