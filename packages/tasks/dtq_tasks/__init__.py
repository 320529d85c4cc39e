"""For people who write handlers: tasks, retry policies, the context of a running task."""

from dtq_tasks.context import Context
from dtq_tasks.decorator import TaskDecorator, task
from dtq_tasks.definition import Task, TaskWithOptions
from dtq_tasks.operations import Operation, OperationToken, idempotent_operation
from dtq_tasks.registry import Registry, default_registry
from dtq_tasks.retry import exponential, fixed, linear
from dtq_tasks.signals import GiveUp, Retry

__all__ = [
    "Context",
    "GiveUp",
    "Operation",
    "OperationToken",
    "Registry",
    "Retry",
    "Task",
    "TaskDecorator",
    "TaskWithOptions",
    "default_registry",
    "exponential",
    "fixed",
    "idempotent_operation",
    "linear",
    "task",
]
