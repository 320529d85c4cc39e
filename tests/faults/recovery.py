"""What holds after every fault: all goes on by itself, soon, and the ledger agrees."""

from __future__ import annotations

import time

from faults.handlers import nap
from support.eventually import eventually
from support.programs import Program
from support.scene import Scene

BACK_WITHIN_S = 5.0
_SETTLED_WITHIN_S = 30.0


def goes_on(scene: Scene, crew: Program) -> None:
    """Fail unless new work of every kind is done soon, and no process has ended."""
    probes = [scene.submit(nap.options(band=band, delay=delay), 0) for band, delay in _PROBES]
    began_s = time.monotonic()
    for probe in probes:
        probe.result(BACK_WITHIN_S - (time.monotonic() - began_s))
    assert crew.exit_code is None


_PROBES = (("critical", 0), ("low", 0), ("normal", 0.1))


def settles(scene: Scene, allowed: range = range(3)) -> None:
    """Wait until all that was submitted has ended, and check the ledger and every attempt."""
    eventually("all tasks to end", lambda: not unfinished(scene), _SETTLED_WITHIN_S)
    scene.settle(allowed)
    for task_id in scene.accepted:
        started = len(scene.journal.attempts(task_id))
        charged = int(scene.hand.field(task_id, "attempt") or 0)
        crashes = int(scene.hand.field(task_id, "crashes") or 0)
        assert crashes == 0, f"{task_id}: {crashes} crashes, and no process had one"
        assert charged == max(1, started), f"{task_id}: {charged} attempts, {started} starts"


def unfinished(scene: Scene) -> bool:
    """Whether any task that was submitted has not ended."""
    names = [scene.hand.store.keys_of(task_id).task(task_id) for task_id in scene.accepted]
    statuses = scene.hand.store.link.pipeline([("HGET", name, "status") for name in names])
    return any(status in _WAITING for status in statuses)


_WAITING = {b"QUEUED", b"RUNNING", b"RETRYING", b"SCHEDULED"}
