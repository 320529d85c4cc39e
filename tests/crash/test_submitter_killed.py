"""A program is killed while it submits: each task is there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.scene import WELL_UNDER_S, Scene

FACES = pytest.mark.parametrize("face", ["Client", "AsyncClient"])


def ids(path: Path) -> list[str]:
    return path.read_text().split()


def all_end(scene: Scene, task_ids: list[str]) -> None:
    """Let a worker run what is there, and settle it."""
    scene.accepted += task_ids
    scene.worker()
    for task_id in task_ids:
        scene.client.result(task_id, timeout=WELL_UNDER_S)
    assert scene.journal.count("start") == dict.fromkeys(task_ids, 1)


@FACES
@pytest.mark.parametrize(("failpoint", "there"), [("submit.before", 2), ("submit.after", 3)])
def test_killed_while_it_submits_one_by_one(
    scene: Scene, tmp_path: Path, face: str, failpoint: str, there: int
) -> None:
    accepted = tmp_path / "accepted"
    program = scene.program(
        "crash.submitting", face, "each", "5", str(accepted), failpoints=f"{failpoint}=kill@3"
    )
    program.killed()
    entries = scene.hand.entries()
    assert (len(ids(accepted)), len(entries)) == (2, there)
    assert set(ids(accepted)) <= set(entries)
    all_end(scene, entries)


@FACES
@pytest.mark.parametrize(("failpoint", "there"), [("submit.before", 500), ("submit.after", 1_000)])
def test_killed_while_it_submits_many(
    scene: Scene, tmp_path: Path, face: str, failpoint: str, there: int
) -> None:
    accepted = tmp_path / "accepted"
    scene.program(
        "crash.submitting", face, "many", "1200", str(accepted), failpoints=f"{failpoint}=kill@2"
    ).killed()
    entries = scene.hand.entries()
    assert (len(entries), len(set(entries))) == (there, there)
    scene.accepted += entries
    scene.hand.run_all(there)


@FACES
def test_started_again_under_the_same_keys_it_submits_nothing_twice(
    scene: Scene, tmp_path: Path, face: str
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    scene.program(
        "crash.submitting", face, "keyed", "5", str(first), failpoints="submit.after=kill@3"
    ).killed()
    assert scene.program("crash.submitting", face, "keyed", "5", str(second)).ended() == 0
    assert ids(second)[:2] == ids(first)
    assert scene.hand.entries() == ids(second)
    all_end(scene, ids(second))
