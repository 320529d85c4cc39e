"""Carries steps out on the server: each from its own state, many in one go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from dtq_core.calls import Call
from model.pipe import Pipe
from model.snapshot import KEYS, look, read, restore
from model.world import IDEMPOTENCY_KEY, State, Step, World

BATCH = 60


class Edge(NamedTuple):
    """A step that was carried out: from which state, with which answer, to which state."""

    before: State
    step: Step
    answer: Any
    after: State

    @property
    def onward(self) -> bool:
        """Whether nothing went wrong in it, and nobody cancelled."""
        was, now = self.before.memory, self.after.memory
        return (was.faults, was.cancels) == (now.faults, now.cancels)


def carry_out(pipe: Pipe, world: World, edges: Iterable[tuple[State, Step]]) -> Iterator[Edge]:
    """Carry out steps; while the replies to some are looked at, the server has the next ones."""
    todo = iter(edges)
    sent: list[tuple[State, Step]] = []
    while (batch := list(islice(todo, BATCH))) or sent:
        pipe.send([command for edge in batch for command in _commands(pipe, world, *edge)])
        for state, step in sent:
            yield Edge(state, step, *_arrived(pipe, world, state, step))
        sent = batch


def _commands(pipe: Pipe, world: World, state: State, step: Step) -> Iterator[tuple[Any, ...]]:
    if step.act is not None:
        yield restore(pipe, state.saved)
        yield _command(pipe, world, state, step)
        yield look(pipe, IDEMPOTENCY_KEY, world.scenario.ids)


def _arrived(pipe: Pipe, world: World, state: State, step: Step) -> tuple[Any, State]:
    """The answer to a step, and the state that it leads to."""
    if step.act is None:
        return None, state._replace(memory=step.remember(None))
    _, reply, (saved, packed) = (pipe.receive() for _ in range(3))
    answer = step.act.decode(reply) if isinstance(step.act, Call) else reply
    return answer, State(saved, read(packed, world.scenario.ids), step.remember(answer))


def _command(pipe: Pipe, world: World, state: State, step: Step) -> tuple[Any, ...]:
    if isinstance(step.act, Call):
        script = world.script(step, state.memory.now_ms)
        return pipe.script(script, KEYS.prefix, step.act.args)
    assert step.act is not None
    return step.act
