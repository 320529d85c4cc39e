"""``dtq list``: tasks, the newest first."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common
from dtq_cli.output import Column, note, print_json, print_table, status_cell
from dtq_cli.times import age
from dtq_client.queries.tasks import Found, Wanted, find_tasks
from dtq_core.limits import Band, check_count, check_name
from dtq_core.record import TaskInfo
from dtq_core.states import Status

_MOST = 100_000
_COLUMNS = (
    Column("ID"),
    Column("NAME", cut=True),
    Column("QUEUE", cut=True),
    Column("STATUS"),
    Column("ATTEMPT", right=True, extra=True),
    Column("AGE", right=True),
)


def list_tasks(
    common: Common,
    status: Annotated[
        list[Status] | None,
        typer.Option(
            "--status",
            help="Only tasks in this status; may be repeated.",
            case_sensitive=False,
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "-q", help="Only this queue.", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Only tasks of this name.", metavar="NAME", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 50,
) -> None:
    """List tasks.

    Tasks that wait, run or are dead letters are found where they wait, run or lie, however many
    others there are. Others are found by the newest events, and only if that does not give enough,
    in small steps among all keys. Of several million keys not all are looked at; stderr then says
    before which time tasks may be missing. It also says when more tasks match than were asked for.
    """
    check_count("--limit", limit, _MOST)
    if queue is not None:
        check_name("queue name", queue)
    if name is not None:
        check_name("task name", name)
    with common.store() as store:
        found = find_tasks(store, Wanted(status or (), queue, name), limit)
    if common.json:
        print_json(found.tasks)
    else:
        print_table(_COLUMNS, map(_row, found.tasks))
    if not found.complete:
        note(_missing(found))
    if found.more:
        note(f"more tasks match than these {limit}: ask for more with --limit")


def _missing(found: Found) -> str:
    which = f"submitted before {found.unseen_before} " if found.unseen_before else ""
    return f"there is too much here to look at all of it: others {which}may be missing"


def _row(info: TaskInfo) -> tuple[object, ...]:
    return (
        info.id,
        info.name,
        info.queue if info.band == Band.NORMAL else f"{info.queue}:{info.band}",
        status_cell(info.status),
        f"{info.attempt}/{info.max_attempts}",
        age(info.submitted_at),
    )
