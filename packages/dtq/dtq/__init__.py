"""dtq: a distributed task queue on Redis Streams whose delivery guarantee is stated and proved.

This is the public face; each name lives in the package that it comes from.
"""

from dtq_client import AsyncClient, AsyncHandle, CancelAnswer, Client, Handle
from dtq_core.errors import (
    DtqError,
    IdempotencyConflictError,
    InputError,
    OutcomeUnknownError,
    RedisError,
    RedisUnavailableError,
    ResultExpiredError,
    ResultTimeoutError,
    TaskCancelledError,
    TaskExpiredError,
    TaskFailedError,
    TaskNotFoundError,
    TaskNotSucceededError,
)
from dtq_core.record import Attempt, Options, TaskInfo
from dtq_core.states import Status
from dtq_tasks import Context, GiveUp, Registry, Retry, Task, exponential, fixed, linear, task

__all__ = [
    "AsyncClient",
    "AsyncHandle",
    "Attempt",
    "CancelAnswer",
    "Client",
    "Context",
    "DtqError",
    "GiveUp",
    "Handle",
    "IdempotencyConflictError",
    "InputError",
    "Options",
    "OutcomeUnknownError",
    "RedisError",
    "RedisUnavailableError",
    "Registry",
    "ResultExpiredError",
    "ResultTimeoutError",
    "Retry",
    "Status",
    "Task",
    "TaskCancelledError",
    "TaskExpiredError",
    "TaskFailedError",
    "TaskInfo",
    "TaskNotFoundError",
    "TaskNotSucceededError",
    "exponential",
    "fixed",
    "linear",
    "task",
]
