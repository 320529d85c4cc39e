"""The attempt that operations belong to, as the handler's context carries it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Protocol

from dtq_core.calls import Opened
from dtq_core.errors import OperationUsageError
from dtq_core.scripts import Code


class OperationPort(Protocol):
    """Keeps the records of one attempt's operations; a worker does it in Redis.

    Its futures may be waited for in any thread and on any event loop.
    """

    def begin(self, name: str, nonce: str, *, rerun: bool) -> Future[Opened]:
        """Begin a run; as :meth:`dtq_core.calls.Calls.op_begin`."""
        ...

    def end(self, name: str, nonce: str, result: bytes | None) -> Future[Code]:
        """End a run; as :meth:`dtq_core.calls.Calls.op_end`."""
        ...


class OperationScope:
    """One attempt of a task, and which operations run in it now.

    A lease belongs to one process. So whether an operation runs twice under one lease is known
    here, and whether the lease is still current is known to the port.

    Attributes:
        task_id: the task.
        port: keeps the records.
        max_result_bytes: the largest result of an operation, encoded.
    """

    def __init__(self, task_id: str, port: OperationPort, max_result_bytes: int) -> None:
        self.task_id = task_id
        self.port = port
        self.max_result_bytes = max_result_bytes
        self._running: dict[str, Future[None]] = {}
        self._lock = threading.Lock()

    def occupy(self, name: str) -> Future[None] | None:
        """Take an operation for one run; if another run has it, return what ends with that."""
        with self._lock:
            other = self._running.get(name)
            if other is None:
                self._running[name] = Future()
            return other

    def leave(self, name: str) -> None:
        """Let the next run have it."""
        with self._lock:
            ended = self._running.pop(name)
        ended.set_result(None)


_current: ContextVar[OperationScope] = ContextVar("dtq_operation_scope")


@contextlib.contextmanager
def entered(scope: OperationScope) -> Iterator[None]:
    """Have the operations of a block belong to an attempt."""
    before = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(before)


def current_scope(name: str) -> OperationScope:
    """Return the attempt that this code runs in.

    Args:
        name: of the operation, for the message.

    Raises:
        OperationUsageError: if it runs in none.
    """
    scope = _current.get(None)
    if scope is None:
        raise OperationUsageError(
            name,
            "no handler runs here: call it inside a task, and start threads of your own with "
            "contextvars.copy_context().run or asyncio.to_thread",
        )
    return scope
