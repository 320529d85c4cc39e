"""The demo from start to end: tasks, workers, a kill, and the check of all that came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtq_cli.demo.compare import compare
from dtq_cli.demo.crew import Kill
from dtq_cli.demo.files import Survey
from dtq_cli.demo.handlers import Run
from dtq_cli.demo.interrupts import Interrupts
from dtq_cli.demo.journal import Execution, read_journal
from dtq_cli.demo.ledger import Evidence, disagreements, recovery, settle
from dtq_cli.demo.plain import read_plainly
from dtq_cli.demo.report import KillReport, Report
from dtq_cli.demo.screen import Screen
from dtq_cli.demo.stage import TASKS_EACH, WORKERS, Stage
from dtq_cli.demo.summary import summarize
from dtq_cli.demo.tasks import (
    Submitted,
    pause_s,
    read_counters,
    read_outcomes,
    read_records,
    submit,
)
from dtq_cli.demo.watch import Watch
from dtq_cli.output import escape
from dtq_core.clock import mono_s


@dataclass(frozen=True, slots=True)
class _Performance:
    """What happened: the tasks, the kill, and how long it took."""

    tasks: Submitted
    kill: Kill | None
    seconds: float


def play(found: Survey, max_bytes: int, screen: Screen, interrupts: Interrupts) -> Report:
    """Run the demo on some files, leave nothing running, and report.

    Args:
        found: the files.
        max_bytes: the largest of them.
        screen: shows what happens.
        interrupts: may end it at any time.

    Raises:
        DtqError: if the server or the workers cannot do their part.
        KeyboardInterrupt: as :class:`Interrupts` says.
    """
    screen.folder(found)
    with Stage(interrupts) as stage:
        performance = _perform(stage, found, max_bytes, screen)
        report = _report(stage, found, max_bytes, performance)
        stage.keep = not report.ok
        return report


def _perform(stage: Stage, found: Survey, max_bytes: int, screen: Screen) -> _Performance:
    pause = pause_s(len(found.files) + 1, WORKERS * TASKS_EACH)
    began_s = mono_s()
    tasks = submit(stage.client, found.files, Run(str(stage.journal), pause, max_bytes))
    total = len(tasks.ids)
    screen.accepted(total, pause)
    watch = Watch(stage.client, stage.start_crew(), stage.journal, total)
    screen.started(watch.until_started(WORKERS), stage.server_version)
    with screen.progress(total):
        kill = watch.until_ended(screen)
    return _Performance(tasks, kill, mono_s() - began_s)


def _report(stage: Stage, found: Survey, max_bytes: int, performance: _Performance) -> Report:
    tasks, kill = performance.tasks, performance.kill
    records = read_records(stage.client, tasks.ids)
    outcomes = read_outcomes(tasks, records)
    began_s = mono_s()
    compared = compare(found.files, outcomes, read_plainly(found.files, max_bytes))
    plain_seconds = mono_s() - began_s
    evidence = Evidence(
        accepted=tasks.ids,
        records=list(records.values()),
        counters=read_counters(stage.client),
        executions=read_journal(stage.journal),
        kill=kill,
        doomed=tasks.doomed.id,
    )
    ledger = settle(evidence)
    wrong = [*disagreements(evidence, ledger), *compared.disagreements]
    return Report(
        ok=not wrong,
        folder=escape(found.root),
        seconds=round(performance.seconds, 3),
        plain_seconds=round(plain_seconds, 3),
        left_out=found.left_out,
        capped=found.capped,
        summary=summarize(found, outcomes),
        agreed=compared.agreed,
        unreadable=[escape(path) for path in compared.unreadable],
        changed=[escape(path) for path in compared.changed],
        ledger=ledger,
        kill=None if kill is None else _kill_report(kill, evidence.executions),
        disagreements=wrong,
        evidence=str(stage.folder) if wrong else None,
    )


def _kill_report(kill: Kill, executions: Sequence[Execution]) -> KillReport:
    return KillReport(kill.pid, kill.after, recovery(executions, kill))
