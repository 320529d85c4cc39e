"""A short run of chaos; ``make chaos`` runs as long as one likes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from chaos.plan import Kind, make_plan
from chaos.run import run

SEED = 7
DURATION_S = 18.0


@pytest.mark.timeout(240)
def test_under_chaos_nothing_is_lost_and_each_repetition_has_its_reason(tmp_path: Path) -> None:
    done = run(tmp_path, SEED, DURATION_S)
    verdict = done.verdict
    assert verdict.good, verdict
    assert verdict.accepted > 200
    assert verdict.executions >= verdict.statuses["SUCCEEDED"] > 100
    assert len(done.happened) == len(make_plan(SEED, DURATION_S))


def test_the_same_seed_plans_the_same_faults() -> None:
    assert make_plan(SEED, 600) == make_plan(SEED, 600)
    assert make_plan(SEED, 600) != make_plan(SEED + 1, 600)


def test_every_kind_of_fault_comes_as_often_as_any_other() -> None:
    counts = Counter(planned.kind for planned in make_plan(SEED, 600))
    assert set(counts) == set(Kind)
    assert max(counts.values()) - min(counts.values()) <= 1
