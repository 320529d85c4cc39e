"""The walk can fail: every script that is broken on purpose is caught.

``pytest -rA`` shows the shortest way to each.
"""

from __future__ import annotations

import pytest

from model.explorer import Explorer
from model.mutants import MUTANTS, Mutant
from model.pipe import Pipe
from model.world import World

MAX_STATES = 20_000


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_broken_script_is_caught(mutant: Mutant, pipe: Pipe) -> None:
    walked = Explorer(pipe, World(mutant.scenario, mutant.scripts()), MAX_STATES).walk()
    assert walked.violation is not None, f"{walked.states} states, and nothing found"
    assert mutant.told in walked.violation
    print(walked.violation)
