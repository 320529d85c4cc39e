"""What came of a run: what was lost, what ran more than once and why, how soon work restarted.

A handler may start again after a failure that was meant, after its worker was told to stop and gave
it back, or after a fault that is written down: its process was killed, frozen, or cut off from
Redis while it ran. Anything else is a fault of dtq.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from chaos.faults import Happened
from chaos.plan import Kind
from chaos.site import Site
from dtq_core import reads
from dtq_core.record import TaskInfo
from support.journal import Line
from support.ledger import check_ledger

MEANT = "its handler failed, as it was meant to"

_ENDS = (Kind.KILL_PROCESS, Kind.KILL_MACHINE)
_CRASHES = (*_ENDS, Kind.FREEZE_PROCESS, Kind.FREEZE_MACHINE, Kind.CUT_MACHINE, Kind.RESTART_REDIS)
"""What may cost an attempt."""
_STOPS = (Kind.DEPLOY, Kind.KILL_SUPERVISOR)
"""After these, workers give back what they run, and that costs none."""
_EVERYWHERE = {Kind.RESTART_REDIS}
_SLACK_S = 0.5
"""A fault is written down a moment before or after it begins."""

Starts = Mapping[str, Sequence[Line]]
"""The starts of each task, in order."""


class Verdict(NamedTuple):
    """The result of a run.

    Attributes:
        accepted: how many tasks were accepted.
        statuses: how many ended how.
        executions: how often handlers started.
        lost: those that have no record or have not ended.
        ledger: every other disagreement; empty: none.
        repeats: why handlers started again, and how often.
        unexplained: starts that nothing explains.
        revived: starts of tasks after a client had been told that they are cancelled.
        recoveries: seconds until the work of a killed process started again, by the fault.
    """

    accepted: int
    statuses: Counter[str]
    executions: int
    lost: list[str]
    ledger: str
    repeats: Counter[str]
    unexplained: list[str]
    revived: list[str]
    recoveries: dict[str, list[float]]

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.lost or self.ledger or self.unexplained or self.revived)


def judge(
    site: Site,
    accepted: Collection[str],
    cancelled: Mapping[str, float],
    happened: Collection[Happened],
) -> Verdict:
    """Judge a run that has ended; nothing runs any more.

    Args:
        site: where it was.
        accepted: the ids that clients were given.
        cancelled: when clients were told that a task is cancelled, monotonic.
        happened: the faults.
    """
    infos = {task_id: _info(site, task_id) for task_id in accepted}
    ended = Counter(str(info.status) for info in infos.values() if info is not None)
    lost = [task_id for task_id, info in infos.items() if info is None or not info.status.terminal]
    starts = _starts(site)
    repeats: Counter[str] = Counter()
    unexplained: list[str] = []
    for before, after in _repeated(starts):
        reason = _reason(site, before, after, happened)
        if reason is None:
            unexplained.append(f"{before} {after} {_info(site, before.task_id)}")
        else:
            repeats[reason] += 1
    return Verdict(
        len(infos),
        ended,
        sum(map(len, starts.values())),
        lost,
        _ledger(site, accepted),
        repeats,
        unexplained,
        _revived(starts, cancelled),
        _recoveries(site, starts, happened),
    )


def _info(site: Site, task_id: str) -> TaskInfo | None:
    return site.store.read(reads.task(site.store.keys_of(task_id), task_id))


def _starts(site: Site) -> Starts:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(site.journal.lines("start"), key=lambda line: line.at_s):
        found[line.task_id].append(line)
    return found


def _repeated(starts: Starts) -> Iterator[tuple[Line, Line]]:
    """Each start of a handler that has started before, with the one before it."""
    for lines in starts.values():
        yield from pairwise(lines)


def _revived(starts: Starts, cancelled: Mapping[str, float]) -> list[str]:
    return [
        f"{line} was cancelled at {told_s}"
        for task_id, told_s in cancelled.items()
        for line in starts.get(task_id, ())
        if line.at_s > told_s
    ]


def _ledger(site: Site, accepted: Collection[str]) -> str:
    try:
        check_ledger(site.store, accepted)
    except AssertionError as error:
        return str(error)
    return ""


def _reason(site: Site, before: Line, after: Line, happened: Collection[Happened]) -> str | None:
    """Say why a handler started again; None if nothing explains it."""
    kinds: Sequence[Kind] = _STOPS
    if after.attempt > before.attempt:
        outcome = _outcome(site, before)
        if outcome == "retry":
            return MEANT
        kinds = _CRASHES if outcome == "crashed" else ()
    for kind in kinds:
        if any(_explains(fault, before, after) for fault in happened if fault.kind is kind):
            return kind
    return None


def _outcome(site: Site, line: Line) -> str | None:
    """How the attempt ended that a start began, as dtq recorded it."""
    read = reads.attempts(site.store.keys_of(line.task_id), line.task_id)
    outcomes = {attempt.attempt: attempt.outcome for attempt in site.store.read(read) or []}
    return outcomes.get(line.attempt)


def _explains(fault: Happened, before: Line, after: Line) -> bool:
    """Whether a fault was there between two starts, and hit the process of the first."""
    then = fault.begin_s - _SLACK_S <= after.at_s and fault.end_s + _SLACK_S >= before.at_s
    return then and (fault.kind in _EVERYWHERE or before.pid in fault.pids)


def _recoveries(
    site: Site, starts: Starts, happened: Collection[Happened]
) -> dict[str, list[float]]:
    """For each task that ran in a process when that was killed: seconds until it ran again."""
    ended = {(line.task_id, line.attempt, line.pid) for line in site.journal.lines("end")}
    kills = {pid: fault for fault in happened if fault.kind in _ENDS for pid in fault.pids}
    found: dict[str, list[float]] = defaultdict(list)
    for before, after in _repeated(starts):
        kill = kills.get(before.pid)
        if kill is not None and (before.task_id, before.attempt, before.pid) not in ended:
            found[kill.kind].append(after.at_s - kill.begin_s)
    return found
