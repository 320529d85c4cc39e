"""Brings a task into each status there is."""

from __future__ import annotations

from collections.abc import Callable

from dtq_core.record import Claim
from dtq_core.states import Status
from scripts.table import LONG_MS, Table

OTHER = "other"
"""A worker that is not the one under test."""


def scheduled(table: Table) -> tuple[str, Claim | None]:
    return table.submit(delay=600), None


def queued(table: Table) -> tuple[str, Claim | None]:
    return table.submit(), None


def running(table: Table) -> tuple[str, Claim | None]:
    task_id = table.submit()
    return task_id, table.claim()


def retrying(table: Table) -> tuple[str, Claim | None]:
    task_id, claim = running(table)
    assert claim is not None
    table.retry(claim, LONG_MS)
    return task_id, claim


def succeeded(table: Table) -> tuple[str, Claim | None]:
    task_id, claim = running(table)
    assert claim is not None
    table.succeed(claim)
    return task_id, claim


def failed(table: Table) -> tuple[str, Claim | None]:
    task_id = table.submit(dead_letter=False)
    claim = table.claim()
    table.fail(claim)
    return task_id, claim


def dead_lettered(table: Table) -> tuple[str, Claim | None]:
    task_id, claim = running(table)
    assert claim is not None
    table.fail(claim)
    return task_id, claim


def cancelled(table: Table) -> tuple[str, Claim | None]:
    task_id = table.submit()
    table.cancel(task_id)
    return task_id, None


def expired(table: Table) -> tuple[str, Claim | None]:
    task_id = table.submit(ttl=0)
    table.expire()
    return task_id, None


MAKERS: dict[Status, Callable[[Table], tuple[str, Claim | None]]] = {
    Status.SCHEDULED: scheduled,
    Status.QUEUED: queued,
    Status.RUNNING: running,
    Status.RETRYING: retrying,
    Status.SUCCEEDED: succeeded,
    Status.FAILED: failed,
    Status.DEAD_LETTERED: dead_lettered,
    Status.CANCELLED: cancelled,
    Status.EXPIRED: expired,
}
