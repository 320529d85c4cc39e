"""``dtq cancel``: one task."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common, TaskId, operator
from dtq_cli.output import note, print_json, print_line
from dtq_client import CancelAnswer
from dtq_client.operating.cancelling import cancel as cancel_task

_DONE = {
    CancelAnswer.CANCELLED: "cancelled: it will not run",
    CancelAnswer.REQUESTED: "requested: its worker has been asked to stop it",
}
_REFUSED = {
    CancelAnswer.ENDED: "it had ended already",
    CancelAnswer.UNKNOWN: "no such task: never submitted here, or its retention is over",
}


def cancel(
    task_id: TaskId,
    common: Common,
    reason: Annotated[
        str,
        typer.Option(
            "--reason", help="Kept with the task and in the audit log.", show_default="cancelled"
        ),
    ] = "",
) -> None:
    """Cancel a task.

    Exit 1 when it had ended or is unknown. With `--json`: `{"id": …, "answer": "cancelled" |
    "requested" | "ended" | "unknown"}`.
    """
    with common.store() as store:
        answer = cancel_task(store, task_id, operator(), reason)
    if common.json:
        print_json({"id": task_id, "answer": answer})
    elif answer in _DONE:
        print_line(_DONE[answer])
    if answer in _REFUSED:
        note(f"task {task_id} was not cancelled: {_REFUSED[answer]}")
        raise typer.Exit(1)
