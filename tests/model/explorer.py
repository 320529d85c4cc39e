"""Walks every order of steps, the shortest first, and stops at the first thing that is wrong.

A state that was seen before is not walked again. Where a walk is complete, it also shows that each
state leads on to a rest, in which all has ended: by the scheduler, the supervisor, time, and the
workers that are left, with no further mishap and no cancel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from model.carry import Edge, carry_out
from model.identity import Identity, identity
from model.invariants import Move, is_at_rest, moves_in, wrong_state, wrong_step
from model.pipe import Pipe
from model.routes import Routes
from model.world import State, World, beginning


class Walked(NamedTuple):
    """What a walk saw.

    Attributes:
        states: different ones.
        steps: script calls and other steps that were carried out.
        depth: the longest of the shortest ways.
        complete: whether nothing was left out: a longer walk finds nothing more.
        moves: from which status, to which, by which script.
        violation: None, or the shortest way to what is wrong, one step a line.
    """

    states: int
    steps: int
    depth: int
    complete: bool
    moves: frozenset[Move]
    violation: str | None = None


class Explorer:
    """Walks one world, on a server that nobody else uses."""

    def __init__(self, pipe: Pipe, world: World, max_states: int) -> None:
        """Take the server, the world, and the number of states after which the walk ends."""
        self._pipe = pipe
        self._world = world
        self._max_states = max_states
        self._start = beginning(world.scenario)
        self._routes = Routes(identity(self._start))
        self._rests: set[Identity] = set()
        self._moves: set[Move] = set()
        self._steps = 0

    def walk(self) -> Walked:
        """Walk until nothing new is found, something is wrong, or the bound is reached."""
        frontier, depth = [self._start], 0
        try:
            while frontier and len(self._routes) < self._max_states:
                frontier, violation = self._layer(frontier)
                depth += bool(frontier)
                if violation is not None:
                    return self._walked(depth + 1, violation=violation)
        finally:
            self._pipe.discard()
        if frontier:
            return self._walked(depth)
        return self._walked(depth, complete=True, violation=self._stuck())

    def _layer(self, frontier: Sequence[State]) -> tuple[list[State], str | None]:
        """Take every step from every state of a layer; return the next one, or what is wrong."""
        found: list[State] = []
        for source, edge in self._edges(frontier):
            target = identity(edge.after)
            self._moves.update(moves_in(edge))
            wrong = list(wrong_step(edge))
            if self._routes.add(source, edge.step.text, target):
                found.append(edge.after)
                wrong += wrong_state(edge.after)
                if is_at_rest(edge.after, len(self._world.scenario.ids)):
                    self._rests.add(target)
            if wrong:
                return found, _story([*self._routes.way_to(source), edge.step.text], wrong)
            if edge.onward:
                self._routes.add_onward(source, target)
            if len(self._routes) >= self._max_states:
                break
        return found, None

    def _edges(self, frontier: Sequence[State]) -> Iterator[tuple[Identity, Edge]]:
        steps = ((state, step) for state in frontier for step in self._world.steps(state))
        last, source = None, b""
        for edge in carry_out(self._pipe, self._world, steps):
            if edge.before is not last:
                last, source = edge.before, identity(edge.before)
            self._steps += 1
            yield source, edge

    def _stuck(self) -> str | None:
        at = self._routes.stuck(self._rests)
        if at is None:
            return None
        return _story(
            self._routes.way_to(at), ["no way leads on from here to the end of all tasks"]
        )

    def _walked(
        self, depth: int, *, complete: bool = False, violation: str | None = None
    ) -> Walked:
        moves = frozenset(self._moves)
        return Walked(len(self._routes), self._steps, depth, complete, moves, violation)


def _story(way: list[str], wrong: list[str]) -> str:
    lines = [f"{number}. {text}" for number, text in enumerate(way, 1)]
    return "\n".join([*lines, *(f"→ {line}" for line in wrong)])
