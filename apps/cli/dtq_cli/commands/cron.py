"""``dtq cron``: recurring schedules."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.commands.submit import named_of, positional_of
from dtq_cli.options import (
    Arguments,
    Common,
    MaxAttempts,
    NamedArguments,
    Reason,
    TaskBand,
    TaskQueue,
    Ttl,
    operator,
)
from dtq_cli.output import Column, print_json, print_line, print_table
from dtq_cli.times import ago
from dtq_client.operating.schedules import (
    ScheduleInfo,
    add_schedule,
    list_schedules,
    pause_schedule,
    remove_schedule,
    resume_schedule,
    run_schedule,
)
from dtq_core import codec
from dtq_core.cron import CronSchedule, Misfire, Overlap
from dtq_core.errors import ScheduleExistsError
from dtq_core.limits import Band
from dtq_core.record import DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE, Options

_COLUMNS = (
    Column("NAME", cut=True),
    Column("TASK", cut=True),
    Column("CRON"),
    Column("ZONE", extra=True),
    Column("NEXT"),
    Column("LAST"),
    Column("FROM", extra=True),
)

Name = Annotated[str, typer.Argument(help="The schedule.", metavar="NAME", show_default=False)]


def list_all(common: Common) -> None:
    """List schedules.

    One that cannot be fired, because somebody wrote it by hand, is listed with the reason and stops
    no other.
    """
    with common.store() as store:
        found = list_schedules(store)
    if common.json:
        print_json(found)
    else:
        print_table(_COLUMNS, map(_row, found))


def _row(info: ScheduleInfo) -> tuple[object, ...]:
    if info.problem is not None:
        following: str | None = info.problem
    elif info.paused_at is not None:
        following = f"paused {ago(info.paused_at)}"
    else:
        following = ago(info.next_at) or "never"
    return (
        info.name,
        info.task,
        info.cron,
        info.tz,
        following,
        ago(info.last_at),
        info.origin,
    )


def add(
    name: Name,
    task: Annotated[
        str, typer.Argument(help="The name of the task.", metavar="TASK", show_default=False)
    ],
    common: Common,
    cron: Annotated[
        str,
        typer.Option(
            "--cron",
            help="When: minute hour day month weekday, or six fields with the second first.",
            show_default=False,
        ),
    ],
    tz: Annotated[str, typer.Option("--tz", help="Its time zone, by its IANA name.")] = "UTC",
    args: Arguments = "[]",
    kwargs: NamedArguments = "{}",
    queue: TaskQueue = DEFAULT_QUEUE,
    band: TaskBand = Band.NORMAL.value,
    ttl: Ttl = None,
    max_attempts: MaxAttempts = DEFAULT_MAX_ATTEMPTS,
    misfire: Annotated[
        str, typer.Option("--misfire", help=f"Of missed slots: {', '.join(Misfire)}.")
    ] = Misfire.ONCE.value,
    overlap: Annotated[
        str,
        typer.Option(
            "--overlap", help=f"While an earlier task has not ended: {', '.join(Overlap)}."
        ),
    ] = Overlap.ALLOW.value,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another one of this name.")
    ] = False,
    reason: Reason = "",
) -> None:
    """Add a schedule.

    Where there is another one of this name it says which, and changes nothing without `--replace`.
    One that replaces what a handler declares stays, whatever workers start, until it is removed.

    What it submits is not checked against the handler, which need not be known here. See
    [scheduling](scheduling.md#recurring-tasks) for the rules.
    """
    schedule = CronSchedule(
        task=task,
        cron=cron,
        tz=tz,
        payload=codec.encode([positional_of(args), named_of(kwargs)], "the arguments").decode(),
        options=Options(queue=queue, band=band, ttl=ttl, max_attempts=max_attempts),
        misfire=misfire,  # type: ignore[arg-type]  # checked where it is stored
        overlap=overlap,  # type: ignore[arg-type]
    )
    with common.store() as store:
        try:
            changed = add_schedule(store, name, schedule, operator(), reason, replace=replace)
        except ScheduleExistsError as error:
            raise ScheduleExistsError(f"{error}; it is replaced with --replace") from None
    _tell(common, name, changed, "added", "was there, just so")


def remove(name: Name, common: Common, reason: Reason = "") -> None:
    """Remove a schedule.

    One that a handler declares comes back with the next worker that starts: pause it instead.
    """
    with common.store() as store:
        remove_schedule(store, name, operator(), reason)
    _tell(common, name, True, "removed", "")


def pause(name: Name, common: Common, reason: Reason = "") -> None:
    """Pause a schedule.

    It stays paused whatever workers start.
    """
    with common.store() as store:
        changed = pause_schedule(store, name, operator(), reason)
    _tell(common, name, changed, "paused", "was paused already")


def resume(name: Name, common: Common, reason: Reason = "") -> None:
    """Resume a schedule."""
    with common.store() as store:
        changed = resume_schedule(store, name, operator(), reason)
    _tell(common, name, changed, "resumed", "was not paused")


def run(name: Name, common: Common, reason: Reason = "") -> None:
    """Fire a schedule."""
    with common.store() as store:
        task_id = run_schedule(store, name, operator(), reason)
    if common.json:
        print_json({"schedule": name, "id": task_id})
    else:
        print_line(task_id)


def _tell(common: Common, name: str, changed: bool, done: str, not_done: str) -> None:
    if common.json:
        print_json({"schedule": name, "changed": changed})
    else:
        print_line(f"{name}: {done if changed else not_done}")
