"""What the commands write: tables and fields for people, JSON for programs, notes on stderr.

Whatever tasks hold reaches a terminal as inert, printable text: no control character, no change of
writing direction, no line break, no markup.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dtq_core.states import Status

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_LONGEST_NOTE = 1_000
_UNLIMITED_WIDTH = 100_000
_WIDE = 100

_STYLES = {
    Status.RUNNING: "cyan",
    Status.RETRYING: "yellow",
    Status.SUCCEEDED: "green",
    Status.FAILED: "red",
    Status.DEAD_LETTERED: "red",
    Status.CANCELLED: "magenta",
    Status.EXPIRED: "magenta",
}


class Column(NamedTuple):
    """A column of a table. Where a terminal is too narrow, it keeps its width unless it may not.

    Attributes:
        title: its heading.
        right: whether it is set to the right, as numbers are.
        cut: whether it may be cut.
        folded: whether it may be broken into lines.
        extra: whether it is left out on a narrow terminal.
    """

    title: str
    right: bool = False
    cut: bool = False
    folded: bool = False
    extra: bool = False


def prepare_streams() -> None:
    """Let no text be refused by an output that cannot write all characters."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def escape(text: str) -> str:
    """Return a text as one printable line, each other character as in a Python string."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def note(text: str) -> None:
    """Write a line to stderr."""
    line = escape(text)
    if len(line) > _LONGEST_NOTE:
        line = f"{line[: _LONGEST_NOTE - 1]}…"
    print(f"dtq: {line}", file=sys.stderr, flush=True)


def to_json(value: Any) -> str:
    """Return JSON in one line, in which what is not printable is written as an escape."""
    text = msgspec.json.encode(value).decode()
    return text if text.isprintable() else re.sub(r"[^ -~]", _json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    char = match[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def print_json(value: Any) -> None:
    """Write a value as one line of JSON, in UTF-8 whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(to_json(value).encode() + b"\n")
    sys.stdout.buffer.flush()


def print_line(text: str) -> None:
    """Write an escaped line."""
    print(escape(text), flush=True)


def status_cell(status: Status) -> Text:
    """Return a status in its colour."""
    from rich.text import Text

    return Text(str(status), _STYLES.get(status, ""))


def queue_cell(name: str, *, paused: bool, lonely: bool) -> str:
    """Return a queue with what keeps its tasks waiting: a pause, or that no worker serves it."""
    marks = [text for text, meant in (("paused", paused), ("no worker", lonely)) if meant]
    return f"{name} ({', '.join(marks)})" if marks else name


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Write a table; nothing is cut, folded or left out where stdout is no terminal."""
    console = _console()
    shown = [not column.extra or console.width >= _WIDE for column in columns]
    table = grid()
    for column in compress(columns, shown):
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not (column.cut or column.folded),
            overflow="ellipsis" if column.cut else "fold",
            min_width=max(map(len, column.title.split("\n"))),
        )
    for row in rows:
        table.add_row(*map(_cell, compress(row, shown)))
    _print(console, table)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Write names and values, one pair a line; what is None is left out."""
    table = grid()
    table.show_header = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value is not None:
            table.add_row(name, _cell(value))
    _print(_console(), table)


def _cell(value: object) -> Text:
    """A value as inert text, nothing for None; what is text already is inert."""
    from rich.text import Text

    if isinstance(value, Text):
        return value
    return Text("" if value is None else escape(str(value)))


def grid() -> Table:
    """Return a table without lines, still empty."""
    from rich.table import Table

    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _UNLIMITED_WIDTH
    return console


def _print(console: Console, table: Table) -> None:
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    print(*lines, sep="\n", flush=True)
