"""``dtq pause`` and ``dtq resume``: queues from which nothing is taken for a while."""

from __future__ import annotations

from collections.abc import Sequence

from dtq_cli.options import Common, QueueNames, Reason, operator
from dtq_cli.output import print_json, print_line
from dtq_client.operating.pausing import pause, resume


def pause_queues(queues: QueueNames, common: Common, reason: Reason = "") -> None:
    """Pause queues.

    See [operations](operations.md#pausing-a-queue).
    """
    with common.store() as store:
        changed = pause(store, queues, operator(), reason)
    _show(common, queues, changed, "paused: its workers take nothing new", "was paused already")


def resume_queues(queues: QueueNames, common: Common, reason: Reason = "") -> None:
    """Resume queues.

    Their workers start at once.
    """
    with common.store() as store:
        changed = resume(store, queues, operator(), reason)
    _show(common, queues, changed, "resumed", "was not paused")


def _show(
    common: Common, queues: Sequence[str], changed: Sequence[str], done: str, not_done: str
) -> None:
    if common.json:
        print_json([{"queue": queue, "changed": queue in changed} for queue in queues])
        return
    for queue in queues:
        print_line(f"{queue}: {done if queue in changed else not_done}")
