"""A worker is killed at each point of a guarded operation: its effect happens as the page says."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from sqlalchemy import Engine, create_engine, text

from crash.handlers import charge_in_transaction, charge_once
from crash.points import OPERATION, Point
from dtq_tasks.operations.sql import create_tables, operations
from support.scene import WELL_UNDER_S, Scene

CHARGES = {
    ("operation.before", "rerun"): 1,
    ("operation.before", "raise"): 1,
    ("operation.begun", "rerun"): 1,
    ("operation.begun", "raise"): 0,
    ("operation.ran", "rerun"): 2,
    ("operation.ran", "raise"): 1,
    ("operation.after", "rerun"): 1,
    ("operation.after", "raise"): 1,
}
"""How often the effect has happened when all is over."""


@pytest.mark.parametrize("on_doubt", ["rerun", "raise"])
@pytest.mark.parametrize("point", OPERATION, ids=lambda point: point.name)
def test_killed_at_a_point_the_effect_happens_as_often_as_the_page_says(
    scene: Scene, point: Point, on_doubt: Literal["rerun", "raise"]
) -> None:
    handle = scene.submit(charge_once, on_doubt)
    scene.crew(point.armed, long=True)
    assert handle.result(timeout=WELL_UNDER_S) == 2
    charged = scene.journal.lines("charge", handle.id)
    assert len(charged) == CHARGES[point.name, on_doubt]


@pytest.fixture
def database(tmp_path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{tmp_path}/effects.db")
    with engine.begin() as connection:
        create_tables(connection)
        connection.execute(text("CREATE TABLE effects (task VARCHAR(32))"))
    return engine


WINDOWS = [*(point.name for point in OPERATION), "before commit", "after commit", "execute.after"]


@pytest.mark.parametrize("window", WINDOWS)
def test_killed_anywhere_what_is_in_the_transaction_is_there_exactly_once(
    scene: Scene, database: Engine, window: str
) -> None:
    url = database.url.render_as_string(hide_password=False)
    handle = scene.submit(charge_in_transaction, url, window)
    scene.crew("" if " " in window else f"{window}=kill", long=True)
    charged_by = 1 if window in {"after commit", "execute.after"} else 2
    assert handle.result(timeout=WELL_UNDER_S) == charged_by
    assert len(scene.starts(handle)) == 2
    with database.connect() as connection:
        assert connection.execute(text("SELECT task FROM effects")).scalars().all() == [handle.id]
        assert connection.execute(operations.select()).one().scope == handle.id
    database.dispose()
