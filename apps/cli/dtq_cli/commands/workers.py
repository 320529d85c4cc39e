"""``dtq workers``: who works, and on what."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from dtq_cli.options import Common
from dtq_cli.output import Column, print_json, print_table
from dtq_cli.times import ago, between
from dtq_client.queries.counters import live_workers
from dtq_core.clock import rfc3339
from dtq_core.reads import WorkerInfo

_COLUMNS = (
    Column("WORKER", folded=True),
    Column("QUEUES", folded=True),
    Column("RUNNING", right=True),
    Column("LONGEST", folded=True),
    Column("SEEN", right=True),
)


_TASKS = Column("TASKS", folded=True)


def workers(
    common: Common,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Show which tasks each worker knows.")
    ] = False,
) -> None:
    """Show workers.

    Of each process it shows the id (host, process id of its supervisor and chance), queues, how
    many tasks it runs and may run, the one that runs longest, and its last heartbeat. The JSON has
    host, process id, the tasks it knows, and up to 100 running ones, each with `id`, `name` and
    `since`; `running_count` is their number.

    During a deploy, `--tasks` tells which workers know a new task already. One that nobody knows
    yet is kept for them, see [operations](operations.md#rolling-deploys).
    """
    with common.store() as store:
        found = live_workers(store)
    described = [_described(worker) for worker in found]
    if common.json:
        print_json(described)
    else:
        print_table(
            (*_COLUMNS, _TASKS) if tasks else _COLUMNS,
            (
                (*_row(worker), ", ".join(worker["tasks"])) if tasks else _row(worker)
                for worker in described
            ),
        )


def _described(worker: WorkerInfo) -> dict[str, Any]:
    """A worker, what it runs with its times spelled out, the longest first."""
    running = sorted(worker.running, key=lambda task: task["since_ms"])
    return msgspec.structs.asdict(worker) | {
        "running": [
            {"id": task["id"], "name": task["name"], "since": rfc3339(task["since_ms"])}
            for task in running
        ]
    }


def _row(worker: dict[str, Any]) -> tuple[object, ...]:
    running = worker["running"]
    longest = running[0] if running else None
    return (
        worker["id"],
        ", ".join(worker["queues"]),
        f"{worker['running_count']}/{worker['concurrency']}",
        longest and f"{longest['name']}, {between(longest['since'], worker['seen_at'])}",
        ago(worker["seen_at"]),
    )
