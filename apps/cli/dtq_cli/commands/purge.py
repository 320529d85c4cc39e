"""``dtq purge``: whatever waits in a queue is cancelled."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common, DryRun, Reason, Yes, confirm, operator
from dtq_cli.output import print_json, print_line
from dtq_cli.progress import Progress
from dtq_cli.words import many
from dtq_client.operating.letters import Done
from dtq_client.operating.purging import count_waiting, purge


def purge_queue(
    common: Common,
    queue: Annotated[str, typer.Option("--queue", "-q", help="The queue.", show_default=False)],
    band: Annotated[
        str | None,
        typer.Option("--band", help="Only this priority band.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Purge a queue.

    Tasks that are queued, delayed or to be retried there become `CANCELLED`, batch by batch. It
    asks first, with their number, unless `--yes` is given. Interrupted, the rest is as it was, and
    the command can be repeated. See [operations](operations.md#purging-a-queue).
    """
    with common.store() as store:
        count = count_waiting(store, queue, band)
        if dry_run:
            _show(common, Done(count, 0), f"{many(count, 'task')} would be cancelled")
            return
        place = queue if band is None else f"{queue}:{band}"
        confirm(f"Cancel {many(count, 'task that waits', 'tasks that wait')} in {place}?", yes=yes)
        with Progress("cancelled") as progress:
            done = purge(store, queue, operator(), reason, band=band, progress=progress)
    _show(common, done, f"{many(done.changed, 'task was', 'tasks were')} cancelled")


def _show(common: Common, done: Done, text: str) -> None:
    if common.json:
        print_json(done)
    else:
        print_line(text)
