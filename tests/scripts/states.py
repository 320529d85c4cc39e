"""Brings a task into each status there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtq_core.record import Claim
from dtq_core.states import Status
from scripts.table import LONG_MS, Table

Made = tuple[str, Claim | None]
"""The task, and the claim that is or was held."""


def scheduled(table: Table, **options: Any) -> Made:
    return table.submit(delay=600, **options), None


def queued(table: Table, **options: Any) -> Made:
    return table.submit(**options), None


def running(table: Table, **options: Any) -> Made:
    return table.submit(**options), table.claim()


def _ended(end: Callable[[Table, Claim], object], **fixed: Any) -> Callable[..., Made]:
    def make(table: Table, **options: Any) -> Made:
        task_id = table.submit(**fixed, **options)
        claim = table.claim()
        end(table, claim)
        return task_id, claim

    return make


def cancelled(table: Table, **options: Any) -> Made:
    task_id = table.submit(**options)
    table.cancel(task_id)
    return task_id, None


def expired(table: Table) -> Made:
    task_id = table.submit(ttl=0)
    table.expire()
    return task_id, None


retrying = _ended(lambda table, claim: table.retry(claim, LONG_MS))
succeeded = _ended(lambda table, claim: table.succeed(claim))
failed = _ended(lambda table, claim: table.fail(claim), dead_letter=False)
dead_lettered = _ended(lambda table, claim: table.fail(claim))

MAKERS: dict[Status, Callable[..., Made]] = {
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
