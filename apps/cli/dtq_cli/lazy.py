"""A sub-command that is imported when it is run, not when it is listed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand

from dtq_cli.options import spread


class Entry(NamedTuple):
    """One sub-command in the table.

    Attributes:
        name: what is typed; two words for a command of a group.
        group: under which heading it is listed.
        target: ``module:function``.
        help: what it does, in a sentence.
        example: a line to copy, where it helps.
    """

    name: str
    group: str
    target: str
    help: str
    example: str = ""

    @property
    def word(self) -> str:
        """What it is called in its group."""
        return self.name.rpartition(" ")[2]


class Group(NamedTuple):
    """What commands of two words have in common: the heading they are listed under, and why."""

    panel: str
    help: str


class LazyCommand(TyperCommand):
    """Stands in for a command until it is run or its own help is asked for."""

    def __init__(self, entry: Entry) -> None:
        """Take the entry; nothing is imported."""
        super().__init__(entry.word, help=entry.help, rich_help_panel=entry.group)
        self._entry = entry

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Hand over to the real command, which parses its arguments and is run."""
        return load(self._entry).make_context(*args, **kwargs)


def load(entry: Entry) -> Any:
    """Import a command and return it, ready to parse its arguments."""
    callback = function_of(entry)
    app = typer.Typer(add_completion=False)
    epilog = f"Example: {entry.example}" if entry.example else None
    app.command(entry.word, help=entry.help, epilog=epilog)(spread(callback))
    return typer.main.get_command(app)


def function_of(entry: Entry) -> Callable[..., None]:
    """Import the function that a command runs."""
    module, _, name = entry.target.partition(":")
    found: Callable[..., None] = getattr(importlib.import_module(module), name)
    return found
