"""The map of a walk: the shortest way to each state, and whether it leads on to a rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from model.identity import Identity


class Routes:
    """Filled by a walk, the shortest ways first."""

    def __init__(self, start: Identity) -> None:
        self._came_from: dict[Identity, tuple[Identity, str] | None] = {start: None}
        self._sources: defaultdict[Identity, list[Identity]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self._came_from)

    def add(self, before: Identity, text: str, after: Identity) -> bool:
        """Note a step; return whether the state that it leads to is a new one."""
        if after in self._came_from:
            return False
        self._came_from[after] = (before, text)
        return True

    def add_onward(self, before: Identity, after: Identity) -> None:
        """Note that one state leads on to another without anything going wrong."""
        if before != after:
            self._sources[after].append(before)

    def way_to(self, at: Identity) -> list[str]:
        """The steps of the shortest way to a state."""
        texts = []
        while (step := self._came_from[at]) is not None:
            at, text = step
            texts.append(text)
        return texts[::-1]

    def stuck(self, rests: Iterable[Identity]) -> Identity | None:
        """The nearest state from which no onward way leads to one of the rests."""
        todo = list(rests)
        led = set(todo)
        while todo:
            for source in self._sources[todo.pop()]:
                if source not in led:
                    led.add(source)
                    todo.append(source)
        return next((state for state in self._came_from if state not in led), None)
