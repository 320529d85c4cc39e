"""Writes the part of ``docs/cli.md`` that is about each command, from the commands themselves.

``python -m dtq_cli.reference docs/cli.md`` keeps what comes before the mark and makes all that
comes after it: a section a command, with the paragraphs of its function's docstring after the
first, and a table of its options.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from dtq_cli.app import COMMANDS
from dtq_cli.lazy import Entry, function_of, load
from dtq_cli.options import COMMON_OPTIONS

MARK = "<!-- What follows is written by `make docs`, from the commands. -->"


def write(page: Path) -> None:
    """Renew a page."""
    page.write_text(renewed(page.read_text("utf-8")), "utf-8")


def renewed(text: str) -> str:
    """Return a page with its part on the commands made anew.

    Raises:
        ValueError: if the mark is missing.
    """
    intro, mark, _ = text.partition(MARK)
    if not mark:
        raise ValueError(f"the page has no line {MARK}")
    return f"{intro}{MARK}\n\n" + "\n".join(_parts())


def _parts() -> Iterator[str]:
    for panel, entries in groupby(COMMANDS, key=lambda entry: entry.group):
        yield f"## {panel}\n"
        for entry in entries:
            yield from _section(entry)


def _section(entry: Entry) -> Iterator[str]:
    command = load(entry)
    usage = " ".join(filter(None, map(_argument, command.params)))
    yield f"### `{f'dtq {entry.name} {usage}'.strip()}`\n"
    yield f"{entry.help}\n"
    _, _, about = inspect.cleandoc(function_of(entry).__doc__ or "").partition("\n\n")
    if about:
        yield f"{about}\n"
    rows = [_row(parameter) for parameter in command.params if _is_own(parameter)]
    if rows:
        yield "\n".join(["| option | meaning |", "|---|---|", *rows]) + "\n"
    if entry.example:
        yield f"```console\n$ {entry.example}\n```\n"


def _argument(parameter: Any) -> str:
    if parameter.param_type_name != "argument":
        return ""
    name = (parameter.metavar or parameter.name.upper()).strip("[]")
    name = f"{name}…" if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def _is_own(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and parameter.name not in COMMON_OPTIONS


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    value = "" if parameter.is_flag else f" `{_metavar(parameter)}`"
    return f"| {names}{value} | {parameter.help}{_default(parameter)} |"


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    kind = str(parameter.type_descriptor.annotation)
    return "N" if "int" in kind or "float" in kind else "TEXT"


def _default(parameter: Any) -> str:
    shown = parameter.show_default
    if parameter.is_flag or shown is False or parameter.default in {None, ""}:
        return ""
    return f" Default: `{shown if isinstance(shown, str) else parameter.default}`."


if __name__ == "__main__":
    write(Path(sys.argv[1]))
