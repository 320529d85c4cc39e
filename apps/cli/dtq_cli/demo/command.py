"""The command ``dtq demo``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from dtq_cli.demo.files import survey
from dtq_cli.demo.interrupts import Interrupts
from dtq_cli.demo.play import play
from dtq_cli.demo.screen import Screen
from dtq_cli.demo.tables import show
from dtq_cli.output import note, print_json

_MIB = 1_048_576
_PLAIN_WIDTH = 100
"""Of lines that go to no terminal."""


def demo(
    folder: Annotated[str, typer.Argument(help="What to examine.", metavar="[FOLDER]")] = ".",
    limit: Annotated[int, typer.Option(min=1, help="How many files at most.")] = 20_000,
    max_mib: Annotated[int, typer.Option(min=1, max=1_024, help="The largest file, in MiB.")] = 64,
    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Examine a folder of real files, kill a worker half-way, and show that nothing is lost.

    All of it happens on a private server in a temporary folder; the server, the settings and the
    tasks of the user are not touched.

    It kills one worker in the middle of its tasks and shows that nothing is lost.
    """
    console = Console(stderr=json, highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    max_bytes = max_mib * _MIB
    with Interrupts() as interrupts:
        try:
            report = play(survey(folder, limit, max_bytes), max_bytes, Screen(console), interrupts)
        except KeyboardInterrupt as interrupt:
            note("the demo was stopped; nothing of it is left running")
            raise typer.Exit(128 + interrupt.args[0]) from None
    if json:
        print_json(report)
    else:
        show(report, console)
    if not report.ok:
        raise typer.Exit(1)
