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
from dtq_cli.words import many
from dtq_core.clock import mono_s
from dtq_core.reads import QueueInfo
from dtq_core.states import Status

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
        self._queued = total
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
                raise DemoError(f"not {many(workers, 'worker')} after {_START_WITHIN_S:g} s")
            time.sleep(_LOOK_EVERY_S)
        return pids

    def until_ended(self, screen: Screen) -> Kill | None:
        """Wait for the end of all tasks, and return the kill: of a worker, half-way.

        Half-way is where half of the tasks have left the queue.

        It also ends when nothing has moved for a minute: the ledger then tells what is missing.

        Raises:
            DemoError: if the workers end.
        """
        while self._goes_on(screen):
            if self._kill is None and 2 * self._queued <= self._total:
                self._kill_one(screen)
            elif self._kill is not None and not self._recovered:
                self._look_for_recovery(screen, self._kill)
            time.sleep(_LOOK_EVERY_S)
        if self._kill is not None and not self._recovered:
            self._look_for_recovery(screen, self._kill, last=True)
        return self._kill

    def _goes_on(self, screen: Screen) -> bool:
        self._check_crew()
        counters = read_counters(self._client)
        if (ended := _ended(counters)) > self._ended:
            self._ended, self._moved_s = ended, mono_s()
        self._queued = counters.tasks[Status.QUEUED]
        screen.update(self._ended, counters)
        return self._ended < self._total and mono_s() - self._moved_s < _STALLED_AFTER_S

    def _check_crew(self) -> None:
        if not self._crew.runs:
            raise DemoError(f"the workers have ended: {self._crew.last_words()}")

    def _kill_one(self, screen: Screen) -> None:
        pids = self._crew.workers(self._client.store)
        self._kill = kill_a_busy_one(pids, self._journal, self._ended)
        if self._kill is not None:
            running = recovery(read_journal(self._journal), self._kill).running
            screen.killed(self._kill, running)

    def _look_for_recovery(self, screen: Screen, kill: Kill, *, last: bool = False) -> None:
        seen = recovery(read_journal(self._journal), kill)
        if last or seen.back == seen.running:
            self._recovered = True
            screen.recovered(seen)


def _ended(counters: QueueInfo) -> int:
    return sum(count for status, count in counters.tasks.items() if status.terminal)
