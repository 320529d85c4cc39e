"""The screen of ``dtq top``, from figures: pure, and never larger than the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dtq_cli.output import escape, grid, queue_cell
from dtq_cli.times import clock, duration
from dtq_client.queries.rates import Figures, QueueFigures, WorkerFigures
from dtq_core.states import Status

T = TypeVar("T")

_SHOWN = (
    Status.QUEUED,
    Status.SCHEDULED,
    Status.RETRYING,
    Status.RUNNING,
    Status.SUCCEEDED,
    Status.DEAD_LETTERED,
)
_TITLES = {Status.DEAD_LETTERED: "DEAD"}
_AROUND_TABLES = 8
"""Lines that are no row of a table: four on top, two empty, two headings."""
_GIB = 1 << 30
_MIB = 1 << 20


class Size(NamedTuple):
    """A terminal's, in characters."""

    columns: int
    rows: int


def screen(
    figures: Figures,
    size: Size,
    where: str,
    trouble: str | None = None,
    lonely: frozenset[str] = frozenset(),
) -> Group:
    """Return the whole screen.

    Args:
        figures: what is shown; the last ones where there is trouble.
        size: of the terminal.
        where: the server and the prefix.
        trouble: why there are no newer figures.
        lonely: queues in which tasks wait, and that no worker serves.
    """
    room = max(0, size.rows - _AROUND_TABLES)
    for_queues, for_workers = _shares(room, len(figures.queues), len(figures.workers))
    return Group(
        _first_line(figures, where, trouble),
        *header(figures),
        Text(),
        queue_table(figures.queues, for_queues, lonely),
        Text(),
        worker_table(figures.workers, for_workers),
    )


def _shares(room: int, queues: int, workers: int) -> tuple[int, int]:
    """Share out the lines for rows; whoever needs less than half leaves the rest to the other."""
    for_workers = min(workers, max(room // 2, room - queues))
    return min(queues, room - for_workers), for_workers


def _first_line(figures: Figures, where: str, trouble: str | None) -> Text:
    if trouble is not None:
        return _line(f"as of {clock(figures.at)}: {trouble}", "bold red")
    return _line(f"dtq top  {clock(figures.at)}  q quits  {where}", "bold")


def header(figures: Figures) -> Iterator[Text]:
    """Return the three lines on the deployment as a whole."""
    tasks = figures.tasks
    yield _facts(
        ("waiting", f"{tasks[Status.QUEUED]:,}"),
        ("delayed", f"{tasks[Status.SCHEDULED]:,}"),
        ("retrying", f"{tasks[Status.RETRYING]:,}"),
        ("running", f"{tasks[Status.RUNNING]:,}"),
        ("ended", _ended(figures)),
    )
    yield _facts(
        ("oldest waiting", _oldest(figures)),
        ("workers", f"{len(figures.workers):,}"),
        ("memory", _memory(figures)),
    )
    yield _facts(("led by", ", ".join(figures.leaders) or "nobody: no scheduler runs"))


def _ended(figures: Figures) -> str:
    if figures.over_seconds is None:
        return "…"
    return f"{rate(figures.ended_per_second)}/s over {duration(figures.over_seconds)}"


def _oldest(figures: Figures) -> str:
    oldest = figures.oldest_waiting
    return f"{duration(oldest.seconds)}, in {oldest.queue}:{oldest.band}" if oldest else "none"


def _memory(figures: Figures) -> str:
    memory = figures.memory
    if memory is None:
        return "not told"
    return size_of(memory.used) + (f" of {size_of(memory.limit)}" if memory.limit else "")


def size_of(count: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{count / _GIB:.2f} GiB" if count >= _GIB else f"{count / _MIB:.1f} MiB"


def rate(per_second: float | None) -> str:
    """Return a rate with no more digits than mean something; an ellipsis for none yet."""
    if per_second is None:
        return "…"
    return f"{per_second:,.0f}" if per_second >= 10 or per_second == 0 else f"{per_second:.1f}"


def queue_table(
    queues: Sequence[QueueFigures], rows: int, lonely: frozenset[str] = frozenset()
) -> Group:
    """Return the queues, or the busiest of them.

    Args:
        queues: all of them, by name.
        rows: how many lines there are for them.
        lonely: those in which tasks wait, and that no worker serves.
    """
    titles = [_TITLES.get(status, str(status)) for status in _SHOWN]
    table = _table("QUEUE", *titles, "ENDED/S")
    shown = _busiest(queues, rows, _busy_queue)
    for queue in shown:
        paused, alone = queue.paused_since is not None, queue.queue in lonely
        cell = queue_cell(queue.queue, paused=paused, lonely=alone)
        counts = (f"{queue.tasks[status]:,}" for status in _SHOWN)
        style = "yellow" if paused or alone else ""
        table.add_row(_line(cell, style), *counts, rate(queue.ended_per_second))
    return _with_rest(table, len(queues) - len(shown))


def worker_table(workers: Sequence[WorkerFigures], rows: int) -> Group:
    """Return the workers, or the busiest of them.

    Args:
        workers: all of them, by id.
        rows: how many lines there are for them.
    """
    table = _table("WORKER", "RUNNING", "SEEN", "LONGEST")
    table.add_column("TASK", overflow="ellipsis")
    shown = _busiest(workers, rows, lambda worker: (worker.running,))
    for worker in shown:
        longest = worker.longest
        table.add_row(
            _line(worker.id),
            f"{worker.running}/{worker.concurrency}",
            f"{duration(worker.beat_seconds)} ago",
            duration(longest.seconds) if longest else "",
            _line(longest.name if longest else ""),
        )
    return _with_rest(table, len(workers) - len(shown))


def _busiest(items: Sequence[T], rows: int, key: Callable[[T], tuple[float, ...]]) -> list[T]:
    """As many as have room beside the line that counts the rest, in the order in which they were.

    So a row stays where it is for as long as it is shown.
    """
    if len(items) <= rows:
        return list(items)
    ranks = sorted(range(len(items)), key=lambda index: key(items[index]), reverse=True)
    return [items[index] for index in sorted(ranks[: max(0, rows - 1)])]


def _busy_queue(queue: QueueFigures) -> tuple[float, ...]:
    tasks = queue.tasks
    return (
        queue.ended_per_second or 0,
        tasks[Status.RUNNING] + tasks[Status.QUEUED],
        tasks[Status.RETRYING] + tasks[Status.SCHEDULED],
    )


def _table(first: str, *others: str) -> Table:
    """A table whose first column gives way where the terminal is too narrow."""
    table = grid()
    table.add_column(first, overflow="ellipsis")
    for title in others:
        table.add_column(title, justify="right", no_wrap=True, overflow="ellipsis")
    return table


def _with_rest(table: Table, left_out: int) -> Group:
    rest = [_line(f"… and {left_out:,} less busy", "dim")] if left_out else []
    return Group(table, *rest)


def _line(text: str, style: str = "") -> Text:
    """Inert text on one line, cut where it is too long."""
    return Text(escape(text), style, no_wrap=True, overflow="ellipsis")


def _facts(*facts: tuple[str, str]) -> Text:
    """Names and values on one line."""
    line = _line("")
    for name, value in facts:
        gap = "   " if line else ""
        line.append(f"{gap}{name} ", "dim").append(escape(value), "bold")
    return line
