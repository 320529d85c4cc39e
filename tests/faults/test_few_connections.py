"""M1: fewer connections than there is to say, and a server that closes idle ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from faults.handlers import nap
from faults.recovery import goes_on, settles
from support.scene import Scene

_THREADS = 100


def test_m1_a_hundred_threads_share_the_few_connections_of_a_client(scene: Scene) -> None:
    crew = scene.crew(concurrency=100)
    goes_on(scene, crew)
    with ThreadPoolExecutor(_THREADS) as pool:
        handles = list(pool.map(lambda _: scene.submit(nap, 0.01), range(3 * _THREADS)))
        results = list(pool.map(lambda handle: handle.result(20), handles))
    assert results == [1] * 3 * _THREADS
    settles(scene, range(1, 2))


def test_m1_a_server_that_closes_idle_connections_is_not_noticed(scene: Scene) -> None:
    scene.hand.command("CONFIG", "SET", "timeout", "1")
    crew = scene.crew()
    for _ in range(3):
        goes_on(scene, crew)
        scene.submit(nap, 1.2).result(5)
    assert "warning" not in crew.log.read_text(), crew.log.read_text()
    settles(scene, range(1, 2))
