"""How lines of the demo look: a label, and what it is about."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

_LABEL_WIDTH = 9


def labelled(label: str, text: Text | str, colour: str = "cyan") -> Table:
    """Return a line; what does not fit into it goes on below the text, not below the label."""
    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_column(width=_LABEL_WIDTH, style=f"bold {colour}")
    line.add_column()
    line.add_row(label, text)
    return line
