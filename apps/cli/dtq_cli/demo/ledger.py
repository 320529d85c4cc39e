"""The ledger: what was accepted, what became of it, and what handlers counted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from dtq import Status, TaskInfo
from dtq_cli.demo.crew import Kill
from dtq_cli.demo.journal import Execution
from dtq_cli.words import many
from dtq_core.reads import QueueInfo

AFTER_FAILURE = "after a failure"
AFTER_KILL = "after the kill"
NOT_STORED = "done, not stored"
"""The handler had returned, and its worker was killed before it could say so."""
UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run left behind.

    Attributes:
        accepted: the ids that submitting returned.
        records: what dtq knows of them.
        counters: what dtq counted.
        executions: what handlers recorded, outside dtq.
        kill: the worker that was killed.
        doomed: the id of the task that cannot succeed.
    """

    accepted: Sequence[str]
    records: Sequence[TaskInfo]
    counters: QueueInfo
    executions: Sequence[Execution]
    kill: Kill | None
    doomed: str


class Ledger(msgspec.Struct, frozen=True):
    """The accounts of a run.

    Attributes:
        accepted: tasks whose submission returned an id.
        succeeded: of them.
        dead_lettered: of them.
        lost: of them, those in no final state.
        executions: starts of a handler, counted outside dtq.
        run_again: tasks with more than one execution.
        again: executions of a task that had been started before, by reason.
        retried: attempts that failed and were followed by another, as dtq counted.
        reclaimed: attempts that ended with their worker, as dtq counted.
        not_begun: of them, those that no handler had begun.
        absorbed: stale stream entries that no handler saw, as dtq counted.
    """

    accepted: int
    succeeded: int
    dead_lettered: int
    lost: int
    executions: int
    run_again: int
    again: dict[str, int]
    retried: int
    reclaimed: int
    not_begun: int
    absorbed: int


def settle(evidence: Evidence) -> Ledger:
    """Make the ledger of a run."""
    records = evidence.records
    by_status = Counter(record.status for record in records)
    starts = Counter(execution.task_id for execution in evidence.executions)
    return Ledger(
        accepted=len(evidence.accepted),
        succeeded=by_status[Status.SUCCEEDED],
        dead_lettered=by_status[Status.DEAD_LETTERED],
        lost=len(_lost(evidence)),
        executions=len(evidence.executions),
        run_again=sum(count > 1 for count in starts.values()),
        again=dict(_again(evidence)),
        retried=sum(record.attempt - 1 - record.crashes for record in records),
        reclaimed=evidence.counters.reclaimed,
        not_begun=sum(record.attempt for record in records) - len(evidence.executions),
        absorbed=evidence.counters.absorbed,
    )


def _lost(evidence: Evidence) -> set[str]:
    ended = {record.id for record in evidence.records if record.status.terminal}
    return set(evidence.accepted) - ended


def _again(evidence: Evidence) -> Counter[str]:
    """Why tasks were started again: by how the start before it ended."""
    last: dict[str, Execution] = {}
    reasons: Counter[str] = Counter()
    for execution in evidence.executions:
        before = last.get(execution.task_id)
        if before is not None:
            reasons[_reason(before, evidence.kill)] += 1
        last[execution.task_id] = execution
    return reasons


def _reason(before: Execution, kill: Kill | None) -> str:
    if kill is not None and before.pid == kill.pid:
        if not before.end:
            return AFTER_KILL
        if before.end == "returned":
            return NOT_STORED
    return AFTER_FAILURE if before.end == "raised" else UNEXPLAINED


class Recovery(msgspec.Struct, frozen=True):
    """What became of the tasks in whose middle a worker was killed.

    Attributes:
        running: how many there were.
        back: how many of them were started again so far.
        after_s: how long after the kill the last of these was.
    """

    running: int
    back: int
    after_s: float


def recovery(executions: Sequence[Execution], kill: Kill) -> Recovery:
    """Return what became of the tasks that a kill interrupted."""
    cut = {(run.task_id, run.attempt) for run in executions if run.pid == kill.pid and not run.end}
    back = [run for run in executions if (run.task_id, run.attempt - 1) in cut]
    last_s = max((run.started_s for run in back), default=kill.at_s)
    return Recovery(len(cut), len(back), last_s - kill.at_s)


def disagreements(evidence: Evidence, ledger: Ledger) -> Iterator[str]:
    """Yield what does not add up, each in one line."""
    for task_id in sorted(_lost(evidence)):
        yield f"task {task_id} was accepted and is in no final state"
    others = ledger.accepted - ledger.succeeded - ledger.dead_lettered - ledger.lost
    if others:
        yield many(
            others,
            "task neither succeeded nor was dead-lettered",
            "tasks neither succeeded nor were dead-lettered",
        )
    for record in evidence.records:
        if record.id == evidence.doomed and record.status is not Status.DEAD_LETTERED:
            yield f"task {record.id} cannot succeed, and is {record.status}"
    if evidence.kill is None:
        yield "no worker could be killed in the middle of a task"
    if ledger.again.get(UNEXPLAINED):
        yield many(
            ledger.again[UNEXPLAINED],
            "task was started again for no known reason",
            "tasks were started again for no known reason",
        )
    crashes = sum(record.crashes for record in evidence.records)
    if not crashes <= ledger.reclaimed <= crashes + ledger.dead_lettered:
        counted = many(ledger.reclaimed, "reclaimed attempt")
        yield f"dtq counted {counted}, its records say {crashes}"
    yield from _wrong_starts(evidence)


def _wrong_starts(evidence: Evidence) -> Iterator[str]:
    """Compare what handlers recorded with what dtq says it started.

    An attempt that dtq counts and no handler recorded was cut off by the kill before it began. A
    record counts as crashes those after which the task was tried again; the last attempt of a
    dead-lettered one can have been one, too.
    """
    starts = Counter((run.task_id, run.attempt) for run in evidence.executions)
    for (task_id, attempt), count in starts.items():
        if count > 1:
            yield f"attempt {attempt} of task {task_id} was started {count} times"
    strangers = {run.task_id for run in evidence.executions} - set(evidence.accepted)
    for task_id in sorted(strangers):
        yield f"task {task_id} was run and never accepted"
    started = Counter(task_id for task_id, _ in starts)
    for record in evidence.records:
        least = record.attempt - record.crashes - (record.status is Status.DEAD_LETTERED)
        if not least <= started[record.id] <= record.attempt:
            yield (
                f"task {record.id} was started {started[record.id]} times, "
                f"and dtq says {record.attempt}"
            )
