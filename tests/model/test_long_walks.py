"""Long random walks of many tasks and mishaps, then rest: the ledger agrees.

``DTQ_MODEL_EXAMPLES`` says how many walks; the first ones are the same in every run. Workers here
have two slots; batches, bands and server versions are walked in ``tests/scripts``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from dtq_core.settings import Settings
from dtq_core.store import Store
from model.carry import carry_out
from model.invariants import is_at_rest, wrong_state, wrong_step
from model.pipe import Pipe
from model.snapshot import KEYS
from model.world import Scenario, Step, World, beginning
from support.ledger import check_ledger

EXAMPLES = int(os.environ.get("DTQ_MODEL_EXAMPLES", "40"))
STEPS = 80
SCENARIO = Scenario(
    tasks=4,
    workers=3,
    max_attempts=3,
    delay=1,
    ttl=20,
    same_key=False,
    isolation=True,
    faults=12,
    releases=2,
    cancels=2,
    slots=2,
)
# In this order everybody does what is to be done, until all have ended.
_DUTIES = ("submits", "abandoned", "succeeded", "adopts", "reclaims", "claims", "scheduler", "tick")
_ROUNDS = 40


class Walk(RuleBasedStateMachine):
    """Takes any step that may be next."""

    pipe: Pipe
    store: Store

    def __init__(self) -> None:
        super().__init__()
        self._world = World(SCENARIO)
        self._state = beginning(SCENARIO)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        steps = {step.text: step for step in self._world.steps(self._state)}
        self._take(steps[data.draw(st.sampled_from(list(steps)))])

    def teardown(self) -> None:
        for _ in range(_ROUNDS):
            if is_at_rest(self._state, SCENARIO.tasks):
                break
            self._do_what_is_due()
        assert is_at_rest(self._state, SCENARIO.tasks), self._state
        check_ledger(self.store, accepted=())

    def _do_what_is_due(self) -> None:
        for duty in _DUTIES:
            for text in [step.text for step in self._world.steps(self._state)]:
                due = duty in text and "lost" not in text and not text.endswith("again")
                if due and (step := self._still(text)) is not None:
                    self._take(step)

    def _still(self, text: str) -> Step | None:
        return next((step for step in self._world.steps(self._state) if step.text == text), None)

    def _take(self, step: Step) -> None:
        (edge,) = carry_out(self.pipe, self._world, [(self._state, step)])
        wrong = [*wrong_step(edge), *wrong_state(edge.after)]
        assert not wrong, (step.text, wrong)
        self._state = edge.after


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(Store(Settings(redis_url=url, prefix=KEYS.prefix))) as made:
        yield made


@pytest.mark.timeout(60 + 3 * EXAMPLES)
def test_after_any_long_walk_all_tasks_end_and_the_ledger_agrees(pipe: Pipe, store: Store) -> None:
    kind = type("Walk", (Walk,), {"pipe": pipe, "store": store})
    limits = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(kind, settings=limits)
