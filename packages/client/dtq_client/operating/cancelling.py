"""Cancelling a task by hand."""

from __future__ import annotations

from dtq_client.requests import CancelAnswer, cancel_answer, checked_reason
from dtq_core.audit import operation
from dtq_core.store import Store


def cancel(store: Store, task_id: str, who: str, reason: str = "") -> CancelAnswer:
    """Cancel a task as :meth:`dtq_client.Client.cancel` does, with an entry in the audit log.

    What changes nothing, as the task has ended or is being stopped already, has no entry.

    Args:
        store: of the deployment.
        task_id: the task.
        who: who does it, for the audit log.
        reason: why, for the audit log and the task; "cancelled" there unless given.

    Raises:
        InputError: for an id or a reason that is refused; nothing was done.
        RedisError: if the server cannot do it.
    """
    act = operation("task.cancel", who, reason, f"id={task_id}")
    call = store.calls_of(task_id).cancel([task_id], checked_reason(reason), act)
    (answer,) = store.run(call)
    return cancel_answer(answer, task_id)
