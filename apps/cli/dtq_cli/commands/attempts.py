"""``dtq attempts``: how the attempts of a task ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtq_cli.options import Common, TaskId
from dtq_cli.output import Column, print_json, print_table
from dtq_cli.times import ago, between
from dtq_core.record import Attempt

_COLUMNS = (
    Column("ATTEMPT", right=True),
    Column("OUTCOME"),
    Column("WORKER", folded=True),
    Column("STARTED"),
    Column("TOOK", right=True),
    Column("ERROR", folded=True),
)


def attempts(task_id: TaskId, common: Common) -> None:
    """List attempts.

    Each with its number, outcome (`succeeded`, `retry`, `failed`, `cancelled`, `crashed`), worker,
    time and error. The traceback is in the JSON: `dtq attempts ID --json`, member
    `error.traceback`.
    """
    with common.client() as client:
        ended = client.attempts(task_id)
    if common.json:
        print_json(ended)
    else:
        print_attempts(ended)


def print_attempts(ended: Sequence[Attempt]) -> None:
    """Write a table of ended attempts."""
    print_table(
        _COLUMNS,
        [
            (
                item.attempt,
                item.outcome,
                item.worker,
                ago(item.started_at),
                between(item.started_at, item.ended_at),
                _brief(item.error),
            )
            for item in ended
        ],
    )


def _brief(error: dict[str, Any] | None) -> str | None:
    """Type and message; the traceback is in the JSON."""
    if error is None:
        return None
    return ": ".join(str(error[part]) for part in ("type", "message") if error.get(part))
