"""Guarded operations: side effects inside a handler that are not repeated when the handler is."""

from dtq_tasks.operations.face import OperationGuard, idempotent_operation
from dtq_tasks.operations.guard import Operation
from dtq_tasks.operations.token import OperationToken

__all__ = ["Operation", "OperationGuard", "OperationToken", "idempotent_operation"]
