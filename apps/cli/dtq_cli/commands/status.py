"""``dtq status``: what is known of one task."""

from __future__ import annotations

import msgspec

from dtq_cli.options import Common, TaskId
from dtq_cli.output import print_fields, print_json, status_cell, to_json
from dtq_cli.times import local
from dtq_core.record import TaskInfo


def status(task_id: TaskId, common: Common) -> None:
    """Show a task."""
    with common.client() as client:
        info = client.get(task_id)
    if common.json:
        print_json(info)
    else:
        print_fields(_fields(info).items())


def _fields(info: TaskInfo) -> dict[str, object]:
    """Every field, as it is read best; what has not happened is left out."""
    values = msgspec.structs.asdict(info)
    shown: dict[str, object] = {
        name: local(value) if name.endswith("_at") else value for name, value in values.items()
    }
    return shown | {
        "status": status_cell(info.status),
        "attempt": f"{info.attempt} of {info.max_attempts}",
        "max_attempts": None,
        "progress": None if info.progress is None else to_json(info.progress),
        "crashes": info.crashes or None,
        "releases": info.releases or None,
        "requeues": info.requeues or None,
    }
