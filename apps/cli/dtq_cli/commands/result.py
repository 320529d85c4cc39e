"""``dtq result``: what a task returned."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dtq_cli.options import Common, TaskId
from dtq_cli.output import print_json
from dtq_client import Client
from dtq_client.queries.counters import live_workers
from dtq_core.errors import ResultTimeoutError
from dtq_core.limits import check_duration_ms
from dtq_core.record import TaskInfo
from dtq_core.states import WAITING


def result(
    task_id: TaskId,
    common: Common,
    wait: Annotated[
        float, typer.Option("--wait", help="Seconds to wait for its end.", metavar="SECONDS")
    ] = 0,
) -> None:
    """Print a result.

    With or without `--json`. Exit 1, with the reason on stderr, when it has not ended in time,
    failed, was cancelled, expired, is unknown, or its result is no longer kept.
    """
    check_wait(wait)
    with common.client() as client:
        print_json(wait_for_result(client, task_id, wait))


def check_wait(seconds: float) -> float:
    """Check how long to wait.

    Raises:
        InvalidOptionError: if it is no finite number in range.
    """
    check_duration_ms("--wait", seconds)
    return seconds


def wait_for_result(client: Client, task_id: str, seconds: float) -> Any:
    """Return the result of a task.

    Raises:
        ResultTimeoutError: if it had not ended in time, with the way on.
        DtqError: as :meth:`dtq_client.Client.result`.
    """
    try:
        return client.result(task_id, seconds)
    except ResultTimeoutError:
        info = client.get(task_id)
        way_on = f", after {seconds:g} s" if seconds else ": give --wait SECONDS to wait for it"
        raise ResultTimeoutError(
            f"task {task_id} is {info.status} and has no result yet{way_on}{_want(client, info)}"
        ) from None


def _want(client: Client, info: TaskInfo) -> str:
    """What a task waits for in vain, where that can be told."""
    if info.status not in WAITING:
        return ""
    serving = [w for w in live_workers(client.store) if info.queue in w.queues]
    if not serving:
        return f"; no live worker serves the queue {info.queue}"
    if not any(info.name in worker.tasks for worker in serving):
        return f"; no live worker of the queue {info.queue} knows the task {info.name}"
    return ""
