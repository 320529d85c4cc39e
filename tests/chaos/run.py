"""One run: load and faults for a while, then time to settle, then the verdict."""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import signal
import time
from collections import ChainMap
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

from chaos.faults import Faults, Happened
from chaos.load import Producer
from chaos.plan import Planned, make_plan
from chaos.site import Site
from chaos.verdict import Verdict, judge
from dtq_core import reads
from dtq_core.clock import mono_s
from support.eventually import eventually

PRODUCERS = 2
_SETTLE_S = 120.0
_STOP_S = 30.0


class Run(NamedTuple):
    """What a run left; times are seconds from its begin.

    Attributes:
        seed: what its faults and its load were drawn from.
        duration_s: how long faults were made.
        verdict: what came of it.
        unsure: submissions whose outcome their clients do not know.
        happened: the faults.
        ended_s: when each execution ended.
    """

    seed: int
    duration_s: float
    verdict: Verdict
    unsure: int
    happened: list[Happened]
    ended_s: list[float]


def run(folder: Path, seed: int, duration_s: float) -> Run:
    """Run once.

    Args:
        folder: for logs and the journal.
        seed: decides which faults happen when, and what is submitted.
        duration_s: how long there are faults.
    """
    with Site(folder) as site:
        faults = Faults(site, seed)
        producers = [
            Producer(site.clients_proxy.url, site.settings.prefix, seed + number)
            for number in range(PRODUCERS)
        ]
        begin_s = mono_s()
        for producer in producers:
            producer.start()
        _make_all(faults, begin_s, seed, duration_s)
        for producer in producers:
            producer.stop()
        accepted = {task_id for producer in producers for task_id in producer.accepted}
        _settle(site, accepted)
        cancelled = dict(ChainMap(*(producer.cancelled for producer in producers)))
        verdict = judge(site, accepted, cancelled, faults.happened)
        return Run(
            seed,
            duration_s,
            verdict,
            sum(producer.unsure for producer in producers),
            [_from(begin_s, fault) for fault in faults.happened],
            [line.at_s - begin_s for line in site.journal.lines("end")],
        )


def _make_all(faults: Faults, begin_s: float, seed: int, duration_s: float) -> None:
    """Make the faults and undo them, each in its time; they overlap."""
    order = itertools.count()
    due: list[tuple[float, int, Callable[[], None]]] = []

    def at(when_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(due, (when_s, next(order), act))

    def begin(planned: Planned) -> None:
        undo = faults.make(planned)
        at(mono_s() - begin_s + planned.lasts_s, undo)

    for planned in make_plan(seed, duration_s):
        at(planned.at_s, functools.partial(begin, planned))
    at(duration_s, lambda: None)
    while due:
        when_s, _, act = heapq.heappop(due)
        time.sleep(max(0.0, begin_s + when_s - mono_s()))
        act()


def _settle(site: Site, accepted: Collection[str]) -> None:
    """Wait until all is done, as far as it will be, and stop everything in order."""
    left = set(accepted)

    def done() -> bool:
        for task_id in list(left):
            info = site.store.read(reads.task(site.store.keys_of(task_id), task_id))
            if info is not None and not info.status.terminal:
                return False
            left.discard(task_id)
        return True

    with contextlib.suppress(AssertionError):  # the verdict says what has not ended
        eventually("the end of all tasks", done, _SETTLE_S)
    for program in [*site.machines, site.scheduler]:
        if program.exit_code is None:
            program.signal(signal.SIGTERM)
    for program in [*site.machines, site.scheduler]:
        program.ended(_STOP_S)
    site.kill_all()


def _from(begin_s: float, fault: Happened) -> Happened:
    return fault._replace(begin_s=fault.begin_s - begin_s, end_s=fault.end_s - begin_s)
