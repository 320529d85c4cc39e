"""``dtq queues``: the counters of each queue."""

from __future__ import annotations

from dtq_cli.options import Common
from dtq_cli.output import Column, print_json, print_table, queue_cell
from dtq_client.queries.counters import all_queues, live_workers, unserved
from dtq_core.reads import QueueInfo
from dtq_core.states import Status

_ALWAYS = frozenset(
    {
        Status.SCHEDULED,
        Status.QUEUED,
        Status.RUNNING,
        Status.RETRYING,
        Status.SUCCEEDED,
        Status.DEAD_LETTERED,
    }
)
"""Statuses that are shown even where no task has them, so that the table mostly stays narrow."""


def queues(common: Common) -> None:
    """Show queues.

    They say how many tasks stand in each waiting or running status now, and how many ever ended in
    each other one. A status that no queue needs is left out of the table. A queue in which
    tasks wait, and that no live worker serves, is marked `no worker`. The JSON has all, and
    `absorbed` (stale entries dropped), `reclaimed` (attempts lost with their worker) and `released`
    (given back, no attempt spent).
    """
    with common.store() as store:
        infos = all_queues(store)
        lonely = frozenset() if common.json else unserved(infos, live_workers(store))
    if common.json:
        print_json(infos)
        return
    counts = [info.tasks for info in infos]
    shown = [s for s in Status if s in _ALWAYS or any(count[s] for count in counts)]
    print_table(
        [
            Column("QUEUE", cut=True),
            *(Column(status.replace("_", "\n"), right=True) for status in shown),
        ],
        [
            (_name(info, lonely), *(f"{count[status]:,}" for status in shown))
            for info, count in zip(infos, counts, strict=True)
        ],
    )


def _name(info: QueueInfo, lonely: frozenset[str]) -> str:
    return queue_cell(info.queue, paused=info.paused_since is not None, lonely=info.queue in lonely)
