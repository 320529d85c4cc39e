"""The end of the demo for people: what was found, the ledger, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.table import Column, Table
from rich.text import Text

from dtq_cli.demo.layout import labelled
from dtq_cli.demo.ledger import Ledger
from dtq_cli.demo.report import Report
from dtq_cli.demo.summary import KindTotal, Summary
from dtq_cli.words import many

_KINDS = 7
_LARGEST = 4
_DUPLICATES = 3
_DISAGREEMENTS = 10
_HEADER = "bold cyan"
_NEXT = (
    "write a task of your own: [bold]docs/getting-started.md[/]; "
    "what is promised: [bold]docs/delivery-guarantees.md[/]"
)


def show(report: Report, console: Console) -> None:
    """Print a report."""
    beside = Table.grid(padding=(0, 2, 0, 0))
    beside.add_row(_kinds(report.summary), _ledger(report.ledger))
    for part in (beside, _largest(report.summary), _duplicates(report.summary)):
        if part.row_count:
            console.print()
            console.print(part)
    console.print()
    for line in _verdict(report):
        console.print(line)


def _table(*columns: Column) -> Table:
    """A table whose last column gives way where it has a ratio."""
    expand = any(column.ratio for column in columns)
    return Table(*columns, box=None, expand=expand, padding=(0, 2, 0, 0), header_style=_HEADER)


def _left(header: str) -> Column:
    return Column(header, no_wrap=True)


def _right(header: str) -> Column:
    return Column(header, justify="right", no_wrap=True)


def _rest(header: str) -> Column:
    return Column(header, no_wrap=True, ratio=1)


def _kinds(summary: Summary) -> Table:
    table = _table(_left("found"), _right("files"), _right("size"), _right("lines"))
    for total in _first_kinds(summary.kinds):
        table.add_row(*_cells(total))
    if len(summary.kinds) != 1:
        table.add_row(*_cells(_together("all", summary.kinds)), style="bold")
    return table


def _first_kinds(kinds: list[KindTotal]) -> Iterator[KindTotal]:
    if len(kinds) <= _KINDS:
        yield from kinds
    else:
        yield from kinds[: _KINDS - 1]
        yield _together(f"{len(kinds) - _KINDS + 1} other kinds", kinds[_KINDS - 1 :])


def _together(name: str, kinds: list[KindTotal]) -> KindTotal:
    return KindTotal(
        name,
        sum(total.files for total in kinds),
        sum(total.bytes for total in kinds),
        sum(total.lines for total in kinds),
        sum(total.words for total in kinds),
    )


def _cells(total: KindTotal) -> tuple[str, ...]:
    return total.kind, f"{total.files:,}", decimal(total.bytes), f"{total.lines:,}"


def _ledger(ledger: Ledger) -> Table:
    table = _table(_left("ledger"), _right(""))
    table.add_row("accepted", f"{ledger.accepted:,}")
    table.add_row("succeeded", f"{ledger.succeeded:,}")
    table.add_row("dead-lettered", f"{ledger.dead_lettered:,}")
    table.add_row("lost", f"{ledger.lost:,}", style="bold red" if ledger.lost else "bold green")
    table.add_row("counted by handlers", style=_HEADER)
    table.add_row("executions", f"{ledger.executions:,}")
    for reason, count in sorted(ledger.again.items()):
        table.add_row(f"  {reason}", f"{count:,}")
    table.add_row("run more than once", f"{ledger.run_again:,}")
    table.add_row("counted by dtq", style=_HEADER)
    table.add_row("retried", f"{ledger.retried:,}")
    table.add_row("reclaimed", f"{ledger.reclaimed:,}")
    if ledger.not_begun:
        table.add_row("  not begun", f"{ledger.not_begun:,}")
    table.add_row("absorbed", f"{ledger.absorbed:,}")
    return table


def _largest(summary: Summary) -> Table:
    table = _table(_right("size"), _left("kind"), _rest("largest"))
    for file in summary.largest[:_LARGEST]:
        table.add_row(decimal(file.bytes), file.kind, Text(file.path))
    return table


def _duplicates(summary: Summary) -> Table:
    table = _table(_right("size"), _right("copies"), _rest("same content"))
    for same in summary.duplicates[:_DUPLICATES]:
        paths = Text(", ".join(same.paths))
        table.add_row(decimal(same.bytes), f"{same.files:,}", paths)
    return table


def _verdict(report: Report) -> Iterator[RenderableType]:
    if report.unreadable:
        files = many(len(report.unreadable), "file")
        yield labelled("", f"{files} could not be read by either side: dead-lettered")
    if report.changed:
        files = many(len(report.changed), "file")
        yield labelled("", f"{files} changed meanwhile and could not be compared")
    if report.kill is not None and report.ok:
        yield labelled("proved", _proof(report, report.kill.recovery.running), "green")
        yield labelled("next", _NEXT)
    for line in report.disagreements[:_DISAGREEMENTS]:
        yield labelled("wrong", Text(line), "red")
    if len(report.disagreements) > _DISAGREEMENTS:
        yield labelled("", f"and {len(report.disagreements) - _DISAGREEMENTS:,} more, see --json")
    if report.evidence is not None:
        yield labelled("evidence", Text(report.evidence), "red")


def _proof(report: Report, running: int) -> str:
    return (
        f"[bold]nothing was lost[/]: a worker was killed in the middle of {many(running, 'task')}, "
        f"yet all {many(report.ledger.accepted, 'task')} ended, and what they "
        f"found in {many(report.agreed, 'file')} is what a plain pass over the same files finds"
    )
