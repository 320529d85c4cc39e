"""``dtq events``: the newest lifecycle events, and those to come."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common
from dtq_cli.output import print_json, print_line
from dtq_cli.times import clock
from dtq_client.queries.events import follow_events, newest_events
from dtq_core.limits import check_count
from dtq_core.reads import Event

_MOST = 100_000


def events(
    common: Common,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new events, until Ctrl-C.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many old ones at most.")] = 20,
) -> None:
    """Show events.

    Those of all partitions, oldest first.
    """
    check_count("--limit", limit, _MOST)
    with common.store() as store:
        if common.json and not follow:
            print_json(newest_events(store, limit))
            return
        show = print_json if common.json else _show
        for event in follow_events(store, limit) if follow else newest_events(store, limit):
            show(event)


def _show(event: Event) -> None:
    what = event.type.removeprefix("TASK_")
    line = f"{clock(event.at)}  {what:<19}  {event.id}  #{event.attempt}  {event.queue}"
    print_line(f"{line}  {event.reason}" if event.reason else line)
