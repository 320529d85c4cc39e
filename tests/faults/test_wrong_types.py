"""A key of dtq holds something foreign for a while: nobody ends, nobody is loud, all goes on."""

from __future__ import annotations

import contextlib
import time

from dtq_core.errors import RedisError
from dtq_core.keyspace import Keyspace
from faults.handlers import fail_once, nap
from faults.recovery import goes_on, settles
from faults.watch import Watch
from support.eventually import eventually
from support.scene import Scene

WRONG_S = 0.5


def test_a_foreign_value_in_any_shared_key_stops_nothing_beyond_its_time(scene: Scene) -> None:
    crew = scene.crew()
    goes_on(scene, crew)
    watch = Watch(crew)
    for key in _shared(scene.hand.store.partitions.all[0]):
        _put_aside(scene, key)
        with contextlib.suppress(RedisError):
            scene.submit(fail_once)
        time.sleep(WRONG_S)
        watch.check_silence()
        _put_back(scene, key)
        goes_on(scene, crew)
    settles(scene)


def _shared(keys: Keyspace) -> list[str]:
    schedules = [keys.retry_schedule, keys.delay_schedule, keys.expiry]
    of_queue = [keys.stream("default", "normal"), keys.wake("default"), keys.stats("default")]
    return [*schedules, *of_queue, keys.events, keys.dlq, keys.queues, keys.workers, keys.leader]


def _put_aside(scene: Scene, key: str) -> None:
    """Replace a key by a value of a type that dtq uses nowhere; what it held is kept."""
    with contextlib.suppress(RedisError):
        scene.hand.command("RENAME", key, f"kept:{key}")
    scene.hand.command("SADD", key, "foreign")


def _put_back(scene: Scene, key: str) -> None:
    scene.hand.command("DEL", key)
    if scene.hand.command("EXISTS", f"kept:{key}"):
        scene.hand.command("RENAME", f"kept:{key}", key)


def test_a_foreign_record_of_a_running_task_leaves_its_neighbours_alone(scene: Scene) -> None:
    crew = scene.crew()
    broken = scene.submit(nap, 0.5)
    scene.submit_many(nap, 10, 0.5)
    scene.started(broken)
    key = scene.hand.store.keys_of(broken.id).task(broken.id)
    _put_aside(scene, key)
    goes_on(scene, crew)
    _put_back(scene, key)
    eventually("its end", lambda: broken.info().status == "SUCCEEDED")
    scene.accepted.remove(broken.id)
    settles(scene, range(1, 2))
