"""``dtq verify`` on a deployment that works, and is hurt meanwhile: it reports nothing in vain."""

from __future__ import annotations

import os
import random
import signal

from crash.handlers import work
from dtq_client.operating.verifying import verify
from dtq_core.clock import mono_s
from dtq_core.verify import Kind
from support.eventually import eventually
from support.scene import WELL_UNDER_S, Scene

LASTS_S = 4.0
TASKS_AT_ONCE = 60


def test_a_live_deployment_agrees_with_itself_at_every_moment(scene: Scene) -> None:
    crew = scene.crew(processes=2)
    chance = random.Random(5)
    handles = []
    end = mono_s() + LASTS_S
    while mono_s() < end:
        handles += scene.submit_many(work.options(max_attempts=50), TASKS_AT_ONCE)
        handles += scene.submit_many(work.options(delay=0.3, max_attempts=50), 5)
        for handle in chance.sample(handles, 3):
            scene.client.cancel(handle.id)
        for pid in crew.children()[:1]:
            os.kill(pid, signal.SIGKILL)
        outcome = verify(scene.hand.store, "os:test@here", repair=True)
        assert outcome.kinds == []
        assert outcome.tasks > 0
    for handle in handles:
        eventually("its end", lambda h=handle: scene.client.get(h.id).status.terminal, WELL_UNDER_S)


def test_what_was_lost_under_load_is_brought_back_and_run(scene: Scene) -> None:
    """The stream is deleted again and again, with all that workers hold of it."""
    scene.crew(processes=2, verify_interval=0)
    stream = scene.hand.store.partitions.all[0].stream("default", "normal")
    handles = []
    for _ in range(8):
        handles += scene.submit_many(work.options(max_attempts=50), TASKS_AT_ONCE)
        scene.hand.command("DEL", stream)
        outcome = verify(scene.hand.store, "os:test@here", repair=True)
        assert {report.kind for report in outcome.kinds} <= {
            *(Kind.ENTRY_LOST, Kind.ENTRY_LOST_RUNNING)
        }
    for handle in handles:
        handle.result(timeout=WELL_UNDER_S)
