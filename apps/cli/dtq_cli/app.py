"""The command ``dtq`` and the one table of its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from dtq_cli.lazy import Entry, Group, LazyCommand

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
        "Run a private Redis, workers, a scheduler and the dashboard in this terminal.",
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
        "api",
        _RUN,
        "dtq_cli.commands.api:api",
        "Run the HTTP API.",
        "dtq api --port 8720",
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
        "top",
        _LOOK,
        "dtq_cli.commands.top:top",
        "Show queues, workers and rates, live.",
    ),
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
        "cron list",
        _OPERATE,
        "dtq_cli.commands.cron:list_all",
        "List recurring schedules: when each fires next, and what it fired last.",
    ),
    Entry(
        "cron add",
        _OPERATE,
        "dtq_cli.commands.cron:add",
        "Add a recurring schedule, or replace one.",
        "dtq cron add nightly report --cron '30 2 * * *' --tz Europe/Berlin",
    ),
    Entry(
        "cron remove",
        _OPERATE,
        "dtq_cli.commands.cron:remove",
        "Remove a recurring schedule; tasks that it made stay.",
    ),
    Entry(
        "cron pause",
        _OPERATE,
        "dtq_cli.commands.cron:pause",
        "Have a recurring schedule fire no more, until it is resumed.",
    ),
    Entry(
        "cron resume",
        _OPERATE,
        "dtq_cli.commands.cron:resume",
        "Have a paused schedule fire again; what it missed is not made up.",
    ),
    Entry(
        "cron run",
        _OPERATE,
        "dtq_cli.commands.cron:run",
        "Fire a recurring schedule now, beside its slots, and print the id of the task.",
    ),
    Entry(
        "purge",
        _OPERATE,
        "dtq_cli.commands.purge:purge_queue",
        "Cancel whatever waits in a queue; what runs is left alone.",
        "dtq purge --queue mail --reason 'wrong campaign'",
    ),
    Entry(
        "dlq list",
        _OPERATE,
        "dtq_cli.commands.dlq:list_letters",
        "List dead letters, the oldest first.",
        "dtq dlq list --queue mail --error TimeoutError --older-than 3600",
    ),
    Entry(
        "dlq show",
        _OPERATE,
        "dtq_cli.commands.dlq:show_letter",
        "Show a dead letter: its arguments, and how its attempts ended.",
    ),
    Entry(
        "dlq requeue",
        _OPERATE,
        "dtq_cli.commands.dlq:requeue_letters",
        "Run failed tasks again, from their first attempt.",
        "dtq dlq requeue --queue mail --rate 50 --reason 'the provider is back'",
    ),
    Entry(
        "dlq purge",
        _OPERATE,
        "dtq_cli.commands.dlq:purge_letters",
        "Remove dead letters for good, with all that is kept of their tasks.",
        "dtq dlq purge --older-than 2592000 --reason 'nobody asked in 30 days'",
    ),
    Entry(
        "keys create",
        _OPERATE,
        "dtq_cli.commands.keys:create",
        "Make an API key, and print its token, once.",
        "dtq keys create shop --role submit --queue mail",
    ),
    Entry(
        "keys list",
        _OPERATE,
        "dtq_cli.commands.keys:list_all",
        "List API keys: what each may be used for, and which are revoked.",
    ),
    Entry(
        "keys revoke",
        _OPERATE,
        "dtq_cli.commands.keys:revoke",
        "Make an API key good for nothing.",
    ),
    Entry(
        "doctor",
        _OPERATE,
        "dtq_cli.commands.doctor:doctor",
        "Check that this Redis is fit: persistence, memory, speed, rights, who works on it.",
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


GROUPS = {
    "cron": Group(_OPERATE, "Recurring schedules: look at them, add, remove, pause, fire."),
    "dlq": Group(_OPERATE, "Dead letters: look at them, run them again, remove them."),
    "keys": Group(_OPERATE, "API keys of the HTTP API: make, list, revoke them."),
}
"""What the commands of two words belong to."""


def build() -> TyperGroup:
    """Return the command, ready to parse a command line."""
    app = typer.Typer(no_args_is_help=True)
    app.callback()(_dtq)
    top = typer.main.get_command(app)
    assert isinstance(top, TyperGroup)
    groups = {"": top}
    for entry in COMMANDS:
        first, _, last = entry.name.rpartition(" ")
        if first not in groups:
            groups[first] = _group(first)
            top.add_command(groups[first])
        groups[first].add_command(LazyCommand(entry), last)
    return top


def _group(name: str) -> TyperGroup:
    group = GROUPS[name]
    return TyperGroup(name=name, help=group.help, rich_help_panel=group.panel, no_args_is_help=True)


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
