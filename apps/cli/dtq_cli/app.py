"""The command ``dtq`` and the one table of its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from dtq_cli.lazy import Entry, LazyCommand

_RUN = "Run"
_TASK = "One task"
_LOOK = "Look"
_OPERATE = "Operate"

COMMANDS = (
    Entry(
        "demo",
        _RUN,
        "dtq_cli.demo.command:demo",
        "Examine a folder of files with workers, one of which is killed on the way.",
    ),
    Entry(
        "dev",
        _RUN,
        "dtq_cli.commands.dev:dev",
        "Run a private Redis, workers and a scheduler in this terminal.",
        "dtq dev app.tasks",
    ),
    Entry(
        "worker",
        _RUN,
        "dtq_cli.commands.worker:worker",
        "Run workers, and a scheduler candidate beside them.",
        "dtq worker app.tasks --queue mail --processes 2",
    ),
    Entry(
        "scheduler",
        _RUN,
        "dtq_cli.commands.scheduler:scheduler",
        "Run a scheduler alone; it stands by while another one leads.",
    ),
    Entry(
        "submit",
        _TASK,
        "dtq_cli.commands.submit:submit",
        "Submit a task by name, and print its id.",
        "dtq submit send_welcome --args '[42]' --queue mail --wait 10",
    ),
    Entry(
        "status",
        _TASK,
        "dtq_cli.commands.status:status",
        "Show what is known of a task.",
    ),
    Entry(
        "result",
        _TASK,
        "dtq_cli.commands.result:result",
        "Print the result of a task, as JSON.",
    ),
    Entry(
        "attempts",
        _TASK,
        "dtq_cli.commands.attempts:attempts",
        "List the ended attempts of a task.",
    ),
    Entry(
        "cancel",
        _TASK,
        "dtq_cli.commands.cancel:cancel",
        "Cancel a task: at once while it waits, by asking its worker while it runs.",
    ),
    Entry(
        "list",
        _LOOK,
        "dtq_cli.commands.list:list_tasks",
        "List tasks, the newest first.",
        "dtq list --status RETRYING --status DEAD_LETTERED --queue mail",
    ),
    Entry("queues", _LOOK, "dtq_cli.commands.queues:queues", "Show each queue and its counters."),
    Entry(
        "workers",
        _LOOK,
        "dtq_cli.commands.workers:workers",
        "Show each live worker and what it runs.",
    ),
    Entry("stats", _LOOK, "dtq_cli.commands.stats:stats", "Show the whole deployment in figures."),
    Entry(
        "events",
        _LOOK,
        "dtq_cli.commands.events:events",
        "Show the newest lifecycle events, and follow them.",
    ),
    Entry(
        "audit",
        _LOOK,
        "dtq_cli.commands.audit:audit",
        "Show what operators did, and check that nobody changed the log of it.",
        "dtq audit --check",
    ),
    Entry(
        "settings",
        _LOOK,
        "dtq_cli.commands.settings:settings",
        "Show each setting, and where its value comes from.",
    ),
    Entry(
        "pause",
        _OPERATE,
        "dtq_cli.commands.pause:pause_queues",
        "Have nothing more taken from queues; what runs goes on.",
        "dtq pause mail --reason 'the provider is down'",
    ),
    Entry(
        "resume",
        _OPERATE,
        "dtq_cli.commands.pause:resume_queues",
        "Have tasks of paused queues taken again.",
    ),
    Entry(
        "verify",
        _OPERATE,
        "dtq_cli.commands.verify:verify_all",
        "Check that everything agrees: records, streams, schedules, dead letters, counters.",
        "dtq verify --repair --reason 'restored from a backup'",
    ),
)
"""Every sub-command, in the order in which they are listed."""


def build() -> TyperGroup:
    """Return the command, ready to parse a command line."""
    app = typer.Typer(no_args_is_help=True)
    app.callback()(_dtq)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for entry in COMMANDS:
        group.add_command(LazyCommand(entry))
    return group


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dtq {version('dtq')}")
        raise typer.Exit


def _dtq(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """A distributed task queue on Redis Streams."""
