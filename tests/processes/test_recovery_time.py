"""How soon the work of the dead starts again elsewhere."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from crash.handlers import linger, work
from dtq import Handle
from dtq_core.clock import mono_s
from dtq_core.keyspace import GROUP
from processes.handlers import linger_on_loop
from support.eventually import eventually
from support.hand import WORKER
from support.programs import Program
from support.scene import LONG_VISIBILITY_S, VISIBILITY_S, WELL_UNDER_S, Scene

PROCESS_S = 1.0
"""A killed process under a living supervisor."""
SLACK = 1.1
CALLS_S = 0.5
"""For claims, scripts and the noise of a shared machine."""
STARTS_S = 2.0
"""For a supervisor and its child to start."""
OVERDUE = 5_000
SLOTS = 50
LIVE = 1_000


def machine_s(scene: Scene, visibility_s: float = VISIBILITY_S) -> float:
    """Within this time work restarts when a whole machine dies; the reaper's looks are jittered."""
    return (visibility_s + 1.2 * scene.settings.reaper_interval) * SLACK + CALLS_S


def restart_s(scene: Scene, handle: Handle[Any], since_s: float) -> float:
    """Wait for a second start, and return how long it took."""
    eventually("the restart", lambda: len(scene.starts(handle)) == 2, WELL_UNDER_S)
    return scene.journal.lines("start", handle.id)[1].at_s - since_s


def ended(scene: Scene, gate: Path, *handles: Handle[Any]) -> None:
    gate.touch()
    for handle in handles:
        handle.result(timeout=WELL_UNDER_S)


def test_what_a_killed_process_ran_restarts_within_a_second(scene: Scene, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    crew = scene.crew(long=True, processes=2)
    eventually("its children", lambda: working(scene, 2))
    handles = [scene.submit(linger, str(gate)) for _ in range(4)]
    scene.started(*handles)
    victim = scene.journal.lines("start")[0].pid
    lost = [h for h in handles if scene.journal.lines("start", h.id)[0].pid == victim]
    killed_s = mono_s()
    os.kill(victim, signal.SIGKILL)
    assert max(restart_s(scene, handle, killed_s) for handle in lost) < PROCESS_S
    ended(scene, gate, *handles)
    assert crew.exit_code is None


def working(scene: Scene, count: int) -> bool:
    return bool(scene.hand.command("ZCARD", scene.hand.store.partitions.all[0].workers) >= count)


def killed_machine(scene: Scene, *handles: Handle[Any]) -> tuple[Program, float]:
    """Let a machine start tasks, have another one ready, and kill the first."""
    first = scene.crew()
    scene.started(*handles)
    second = scene.crew(concurrency=8)
    eventually("the second machine", lambda: working(scene, 2))
    first.kill_all()
    return second, mono_s()


def test_c3_what_a_killed_machine_ran_restarts_within_the_visibility_timeout_and_a_look(
    scene: Scene, tmp_path: Path
) -> None:
    """The task's own time limit, an hour, plays no part."""
    gate = tmp_path / "gate"
    handles = [scene.submit(linger.options(timeout=3_600), str(gate)) for _ in range(4)]
    _, killed_s = killed_machine(scene, *handles)
    assert max(restart_s(scene, handle, killed_s) for handle in handles) < machine_s(scene)
    ended(scene, gate, *handles)


@pytest.mark.parametrize("settings", [LONG_VISIBILITY_S], indirect=True)
def test_c3_an_entry_is_taken_when_its_long_visibility_timeout_ends_and_not_before(
    scene: Scene,
) -> None:
    """Redis is told that the entry has been idle for most of it."""
    handle = scene.submit(work)
    scene.hand.claim()
    left_s = 2.0
    entry = scene.hand.field(handle.id, "entry_id")
    stream = scene.hand.store.keys_of(handle.id).stream("default", "normal")
    idle_ms = int((LONG_VISIBILITY_S - left_s) * 1_000)
    scene.hand.store.link.raw("XCLAIM", stream, GROUP, WORKER, 0, entry, "IDLE", idle_ms, "JUSTID")
    begun_s = mono_s()
    scene.worker()
    handle.result(timeout=WELL_UNDER_S)
    [started] = scene.journal.lines("start", handle.id)
    assert left_s - 0.1 < started.at_s - begun_s < machine_s(scene, left_s)
    assert handle.info().crashes == 1


def test_c3_the_only_worker_comes_back_later_and_takes_up_what_it_had(
    scene: Scene, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    handle = scene.submit(linger, str(gate))
    worker = scene.worker(worker_id="the-only-one")
    scene.started(handle)
    worker.kill_all()
    eventually("it to be known as dead", lambda: not alive(scene, "the-only-one"))
    begun_s = mono_s()
    scene.worker(worker_id="the-only-one")
    assert restart_s(scene, handle, begun_s) < machine_s(scene)
    ended(scene, gate, handle)


def alive(scene: Scene, worker_id: str) -> bool:
    return bool(scene.hand.command("EXISTS", scene.hand.store.partitions.all[0].worker(worker_id)))


def test_c3_five_thousand_overdue_entries_do_not_wait_for_a_look_each_time_slots_are_free(
    scene: Scene,
) -> None:
    handles = scene.submit_many(work.options(max_attempts=5), OVERDUE)
    scene.hand.claim(OVERDUE)
    begun_s = mono_s()
    scene.crew(concurrency=SLOTS)
    handles[-1].result(timeout=60)
    eventually("the others", lambda: scene.hand.pending() == 0, 60)
    starts = scene.journal.lines("start")
    assert len(starts) == OVERDUE
    assert starts[0].at_s - begun_s < machine_s(scene) + STARTS_S
    looks_s = OVERDUE / SLOTS * scene.settings.reaper_interval
    assert starts[-1].at_s - starts[0].at_s < looks_s / 2


def test_c3_a_lost_task_behind_a_thousand_live_ones_is_found_as_soon(
    scene: Scene, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    live = scene.submit_many(linger_on_loop, LIVE, str(gate))
    scene.worker(concurrency=LIVE)
    scene.started(*live)
    lost = scene.submit(linger, str(gate))
    victim = scene.worker()
    scene.started(lost)
    scene.worker()
    eventually("the other worker", lambda: working(scene, 3))
    victim.kill_all()
    assert restart_s(scene, lost, mono_s()) < machine_s(scene)
    ended(scene, gate, lost, *live)
    assert [scene.starts(handle) for handle in live] == [[1]] * LIVE
