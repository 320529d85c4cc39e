"""The server is away, or serves nobody: nothing is lost, and meanwhile nobody is busy or loud."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from dtq_core.embedded import TemporaryServer
from faults.load import Load
from faults.outages import OUTAGES, Outage
from faults.recovery import goes_on, settles
from faults.watch import Watch
from support.eventually import eventually
from support.scene import Scene

AWAY_S = 3.0
"""Three visibility timeouts."""

Blow = Callable[[TemporaryServer, Scene], None]


def at_work(scene: Scene) -> None:
    """Wait until some tasks have ended."""
    eventually("work to be done", lambda: len(scene.journal.lines("end")) > 20)


@pytest.mark.parametrize("outage", OUTAGES)
def test_d3_d4_during_an_outage_nobody_is_busy_and_after_it_all_goes_on(
    outage: Outage, server: TemporaryServer, scene: Scene
) -> None:
    crew = scene.crew()
    with Load(scene):
        at_work(scene)
        with outage(server, scene):
            watch = Watch(crew)
            time.sleep(AWAY_S)
            watch.check()
        goes_on(scene, crew)
    settles(scene)


def killed_and_back_at_once(server: TemporaryServer, scene: Scene) -> None:
    server.kill()
    server.restart()


def restarted_five_times(server: TemporaryServer, scene: Scene) -> None:
    end_s = time.monotonic() + AWAY_S
    for left in range(5, 0, -1):
        server.kill()
        server.restart()
        time.sleep(max(0.0, (end_s - time.monotonic()) / left))


def clients_killed_twenty_times(server: TemporaryServer, scene: Scene) -> None:
    for _ in range(20):
        scene.hand.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        time.sleep(0.1)


def scripts_flushed_without_end(server: TemporaryServer, scene: Scene) -> None:
    """Every 100 ms, for as long as a few hundred tasks take."""
    for _ in range(30):
        scene.hand.command("SCRIPT", "FLUSH")
        time.sleep(0.1)


@pytest.mark.parametrize(
    "blow",
    [
        pytest.param(killed_and_back_at_once, id="d4_killed_and_back_at_once"),
        pytest.param(restarted_five_times, id="d4_restarted_five_times"),
        pytest.param(clients_killed_twenty_times, id="d4_clients_killed_twenty_times"),
        pytest.param(scripts_flushed_without_end, id="d1_scripts_flushed"),
    ],
)
def test_d1_d4_after_a_blow_all_goes_on_and_the_log_is_short(
    blow: Blow, server: TemporaryServer, scene: Scene
) -> None:
    crew = scene.crew()
    with Load(scene):
        at_work(scene)
        watch = Watch(crew)
        blow(server, scene)
        watch.check_silence()
        goes_on(scene, crew)
    settles(scene)
