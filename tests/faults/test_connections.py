"""Connections are cut before and after each kind of command, or go silent."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from dtq_core import scripts
from dtq_core.embedded import TemporaryServer
from faults.handlers import fail_once, nap
from faults.load import Load
from faults.recovery import goes_on, settles
from faults.watch import Watch
from support.eventually import eventually
from support.proxy import Fault, Picks, Proxy, is_command, runs
from support.scene import Scene

CUT: dict[str, Picks] = {
    "submit": runs(scripts.SUBMIT),
    "cancel": runs(scripts.CANCEL),
    "claim": runs(scripts.CLAIM),
    "finish": runs(scripts.FINISH),
    "renew": runs(scripts.RENEW),
    "beat": runs(scripts.BEAT),
    "lead": runs(scripts.LEAD),
    "promote": runs(scripts.PROMOTE),
    "expire": runs(scripts.EXPIRE),
    "reclaim": runs(scripts.RECLAIM),
    "wait for a token": is_command("BLPOP"),
}
SILENT_S = 3.0


@pytest.fixture
def proxy(server: TemporaryServer) -> Iterator[Proxy]:
    with Proxy(server.url) as made:
        yield made


@pytest.fixture
def redis_url(proxy: Proxy) -> str:
    return proxy.url


@pytest.mark.parametrize("fault", [Fault.CUT_REQUEST, Fault.CUT_REPLY], ids=lambda f: f.name)
def test_b5_a_connection_cut_at_any_command_costs_no_attempt_and_no_second_run(
    fault: Fault, proxy: Proxy, scene: Scene
) -> None:
    crew = scene.crew()
    scene.submit_many(nap, 3, 6.0)
    with Load(scene):
        eventually("work to be done", lambda: len(scene.journal.lines("end")) > 20)
        for name, picks in CUT.items():
            _cut_twice(proxy, fault, name, picks)
        goes_on(scene, crew)
    settles(scene)
    for task_id in scene.accepted:
        starts = scene.journal.attempts(task_id)
        assert len(starts) == len(set(starts)), f"{task_id} ran twice in one attempt: {starts}"


def _cut_twice(proxy: Proxy, fault: Fault, name: str, picks: Picks) -> None:
    wanted = proxy.hits + 2
    proxy.arm(fault, picks, times=2)
    eventually(f"two cuts at {name}", lambda: proxy.hits == wanted)


@pytest.mark.parametrize("fault", [Fault.DROP_REQUEST, Fault.DROP_REPLY], ids=lambda f: f.name)
def test_d4_connections_that_go_silent_are_left_and_all_goes_on(
    fault: Fault, proxy: Proxy, scene: Scene
) -> None:
    crew = scene.crew()
    scene.submit(fail_once)
    with Load(scene):
        eventually("work to be done", lambda: len(scene.journal.lines("end")) > 20)
        proxy.arm(fault, lambda command: True, times=1_000_000)
        watch = Watch(crew)
        time.sleep(SILENT_S)
        watch.check()
        proxy.arm(fault, lambda command: False)
        goes_on(scene, crew)
    settles(scene)
