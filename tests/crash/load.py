"""Work for a scene whose processes are killed: tasks of every fate, and what each may cost.

A handler starts as often as its task needs, and once more for each time that its process was
killed while it ran. A process may also be killed before the handler has started, so that an attempt
is used up without a start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from crash.handlers import fail_once, rest, work
from dtq import Status
from support.eventually import eventually
from support.scene import Scene

ATTEMPTS = 30
_RESTS_S = 0.6
"""Longer than a third of the visibility timeouts of tests, so that leases are renewed."""


class Kind(NamedTuple):
    """A task, and how often its handler starts when nobody is killed."""

    task: Any
    args: tuple[Any, ...]
    starts: int
    options: Mapping[str, float] = MappingProxyType({})


KINDS = [
    *[Kind(rest, (_RESTS_S,), 1)] * 2,
    *[Kind(work, (), 1)] * 6,
    *[Kind(fail_once, (), 2)] * 2,
    *[Kind(work, (), 1, {"delay": 0.2})] * 2,
    Kind(work, (), 0, {"delay": 60, "ttl": 0.3}),
]


class Load:
    """What was submitted, and how often each may have started."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._starts: dict[str, int] = {}

    def wave(self) -> None:
        """Submit one task of each kind."""
        for kind in KINDS:
            task = kind.task.options(max_attempts=ATTEMPTS, **kind.options)
            handle = self._scene.submit(task, *kind.args)
            self._starts[handle.id] = kind.starts

    def all_end(self, limit_s: float = 60) -> None:
        """Wait until every task has ended."""

        def left() -> list[str]:
            infos = map(self._scene.client.get, self._starts)
            return [info.id for info in infos if not info.status.terminal]

        eventually("the end of all tasks", lambda: not left(), limit_s)

    def outcomes(self) -> dict[str, tuple[Status, int]]:
        """Return the status and the attempt of each task."""
        infos = map(self._scene.client.get, self._starts)
        return {info.id: (info.status, info.attempt) for info in infos}

    def check(self, killed: Collection[int], hurried: Collection[int] = ()) -> None:
        """Check that all ended well, and what each start beyond the usual follows.

        Args:
            killed: the process ids of workers that were killed, or frozen past their leases.
            hurried: of those that were told to give everything back at once.
        """
        for task_id, usual in self._starts.items():
            info = self._scene.client.get(task_id)
            assert info.status is (Status.SUCCEEDED if usual else Status.EXPIRED), info
            assert killed or not info.crashes, info
            lines = self._scene.journal.lines("start", task_id)
            most = usual + info.crashes + (info.releases if hurried else 0)
            assert len(lines) in range(bool(usual), most + 1), (info, lines)
            lost = sum(line.pid in killed or line.pid in hurried for line in lines)
            assert len(lines) - usual <= lost, (info, lines, killed, hurried)
