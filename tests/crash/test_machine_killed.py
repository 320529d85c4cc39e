"""Supervisor, children and scheduler are killed together, as a power failure does."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash.handlers import fail_once, linger, work
from dtq import Status
from support.eventually import eventually
from support.scene import WELL_UNDER_S, Scene


@pytest.mark.parametrize("settings", [1, 3], indirect=True)
def test_all_that_a_killed_machine_held_ends_elsewhere(scene: Scene, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    running = [scene.submit(linger, str(gate)) for _ in range(8)]  # as many as there are slots
    machine = scene.crew(processes=2)
    scene.started(*running)
    queued = scene.submit_many(work, 20)
    delayed = [scene.submit(work.options(delay=0.5)) for _ in range(5)]
    machine.kill_all()
    assert {handle.status() for handle in running} == {Status.RUNNING}
    gate.touch()

    scene.crew(processes=2)
    for handle in [*running, *queued, *delayed]:
        handle.result(timeout=WELL_UNDER_S)
    assert [scene.starts(handle) for handle in running] == [[1, 2]] * len(running)
    assert [scene.starts(handle) for handle in [*queued, *delayed]] == [[1]] * 25


def test_a_machine_that_is_killed_between_two_attempts_forgets_nothing(scene: Scene) -> None:
    handles = [scene.submit(fail_once) for _ in range(5)]
    machine = scene.worker()
    for handle in handles:
        eventually("its first failure", lambda h=handle: h.status() is Status.RETRYING)
    machine.kill_all()
    scene.crew()
    assert [handle.result(timeout=WELL_UNDER_S) for handle in handles] == [2] * 5
    assert [scene.starts(handle) for handle in handles] == [[1, 2]] * 5
    assert {handle.info().crashes for handle in handles} == {0}
