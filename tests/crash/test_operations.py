"""A worker is killed at every point of a guarded operation: how often its effect happens then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import create_engine, text

from crash.handlers import charge, pay
from crash.points import OPERATION, Point
from dtq import Status
from dtq_tasks.operations.sql import create_tables, operations
from support.databases import DATABASES
from support.eventually import eventually
from support.scene import WELL_UNDER_S, Scene

LATER = [Point("execute.after"), Point("finish.before"), Point("finish.after")]
POINTS = [*OPERATION, *LATER]
TWICE = {"operation.ran"}
"""The effect has happened, and nobody has written that down."""
IN_DOUBT = {"operation.begun", "operation.ran"}


def effects(scene: Scene, task_id: str) -> int:
    return scene.journal.count("effect")[task_id]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_where_doubt_means_rerun_the_effect_happens_once_or_in_one_window_twice(
    scene: Scene, point: Point
) -> None:
    handle = scene.submit(charge, "rerun")
    scene.crew(point.armed, long=True)
    assert handle.result(timeout=WELL_UNDER_S) == "receipt"
    assert effects(scene, handle.id) == (2 if point.name in TWICE else 1)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_where_doubt_is_raised_the_effect_never_happens_twice(scene: Scene, point: Point) -> None:
    handle = scene.submit(charge, "raise")
    scene.crew(point.armed, long=True)
    eventually("its end", lambda: handle.status().terminal, WELL_UNDER_S)
    if point.name in IN_DOUBT:
        assert handle.status() is Status.DEAD_LETTERED
        assert (handle.attempts()[-1].error or {})["type"] == "OperationInDoubtError"
        assert effects(scene, handle.id) == (1 if point.name in TWICE else 0)
    else:
        assert handle.result(0) == "receipt"
        assert effects(scene, handle.id) == 1


@pytest.fixture(scope="module", params=DATABASES)
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        url = stack.enter_context(DATABASES[request.param]())
        engine = create_engine(url)
        with engine.begin() as connection:
            create_tables(connection)
            connection.execute(text("CREATE TABLE payments (id VARCHAR(32))"))
        engine.dispose()
        yield url


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_an_effect_in_the_same_transaction_happens_exactly_once(
    scene: Scene, database: str, point: Point
) -> None:
    handle = scene.submit(pay, database)
    scene.crew(point.armed, long=True)
    assert handle.result(timeout=WELL_UNDER_S) == 42
    engine = create_engine(database)
    with engine.connect() as connection:
        paid = connection.execute(text("SELECT id FROM payments")).scalars().all()
        kept = connection.execute(operations.select()).all()
    engine.dispose()
    assert paid.count(handle.id) == 1
    assert [row.result for row in kept if row.scope == handle.id] == [b"42"]
