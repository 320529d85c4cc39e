"""Waiting until every task has ended, with a worker killed half-way."""

from __future__ import annotations

import time
from pathlib import Path

from dtq import Client, DtqError
from dtq_cli.demo.crew import Crew, Kill, kill_a_busy_one
from dtq_cli.demo.journal import read_journal
from dtq_cli.demo.ledger import recovery
from dtq_cli.demo.screen import Screen
from dtq_cli.demo.tasks import read_counters
from dtq_core.clock import mono_s
from dtq_core.reads import QueueInfo

_LOOK_EVERY_S = 0.05
_START_WITHIN_S = 30.0
_STALLED_AFTER_S = 60.0


class DemoError(DtqError):
    """The demo cannot go on."""


class Watch:
    """Looks at a run again and again until it is over."""

    def __init__(self, client: Client, crew: Crew, journal: Path, total: int) -> None:
        """Set up.

        Args:
            client: to ask with.
            crew: who works.
            journal: where handlers record what they start.
            total: how many tasks were accepted.
        """
        self._client = client
        self._crew = crew
        self._journal = journal
        self._total = total
        self._ended = 0
        self._moved_s = mono_s()
        self._kill: Kill | None = None
        self._recovered = False

    def until_started(self, workers: int) -> list[int]:
        """Wait for workers, and return their process ids.

        Raises:
            DemoError: if they do not come.
        """
        limit_s = mono_s() + _START_WITHIN_S
        while len(pids := self._crew.workers(self._client.store)) < workers:
            self._check_crew()
            if mono_s() > limit_s:
                raise DemoError(f"no {workers} workers after {_START_WITHIN_S:g} s")
            time.sleep(_LOOK_EVERY_S)
        return pids

    def until_ended(self, screen: Screen) -> Kill | None:
        """Wait for the end of all tasks, kill a worker half-way, and return the kill.

        Raises:
            DemoError: if the workers end, or nothing moves any more.
        """
        while self._ended < self._total:
            counters = read_counters(self._client)
            self._note(_ended(counters))
            screen.update(self._ended, counters)
            if self._kill is None:
                self._kill_half_way(screen)
            elif not self._recovered:
                self._look_for_recovery(screen, self._kill)
            time.sleep(_LOOK_EVERY_S)
        return self._kill

    def _note(self, ended: int) -> None:
        if ended > self._ended:
            self._ended, self._moved_s = ended, mono_s()
        self._check_crew()
        if mono_s() - self._moved_s > _STALLED_AFTER_S:
            raise DemoError(f"no task has ended for {_STALLED_AFTER_S:g} s")

    def _check_crew(self) -> None:
        if not self._crew.runs:
            raise DemoError(f"the workers have ended: {self._crew.last_words()}")

    def _kill_half_way(self, screen: Screen) -> None:
        if 2 * self._ended >= self._total - 1:
            pids = self._crew.workers(self._client.store)
            self._kill = kill_a_busy_one(pids, self._journal, self._ended)
        if self._kill is not None:
            running = recovery(read_journal(self._journal), self._kill).running
            screen.killed(self._kill, running)

    def _look_for_recovery(self, screen: Screen, kill: Kill) -> None:
        seen = recovery(read_journal(self._journal), kill)
        if seen.complete:
            self._recovered = True
            screen.recovered(seen)


def _ended(counters: QueueInfo) -> int:
    return (
        counters.succeeded
        + counters.failed
        + counters.dead_lettered
        + counters.cancelled
        + counters.expired
    )
