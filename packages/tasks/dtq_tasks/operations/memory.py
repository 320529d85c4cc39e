"""Records of operations in memory, for tests without Redis; the rules of the scripts."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from dtq_core.calls import Opened
from dtq_core.limits import MAX_RESULT_BYTES
from dtq_core.scripts import Code
from dtq_tasks.operations.scope import OperationScope

T = TypeVar("T")


@dataclass
class _Kept:
    lease: int
    nonce: str
    in_doubt: bool = False
    result: bytes | None = None


@dataclass
class _Task:
    lease: int = 0
    operations: dict[str, _Kept] = field(default_factory=dict)


class MemoryOperations:
    """The records of all tasks; a new attempt of a task makes its last one lose its lease."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}
        self._leases = itertools.count(1)

    def attempt(self, task_id: str) -> OperationScope:
        """Begin an attempt of a task."""
        task = self._tasks.setdefault(task_id, _Task())
        task.lease = next(self._leases)
        return OperationScope(task_id, _Port(task), MAX_RESULT_BYTES)


class _Port:
    def __init__(self, task: _Task) -> None:
        self._task = task
        self._lease = task.lease
        self._lock = threading.Lock()

    def begin(self, name: str, nonce: str, *, rerun: bool) -> Future[Opened]:
        with self._lock:
            return _answered(self._begin(name, nonce, rerun))

    def end(self, name: str, nonce: str, result: bytes | None) -> Future[Code]:
        with self._lock:
            return _answered(self._end(name, nonce, result))

    def _begin(self, name: str, nonce: str, rerun: bool) -> Opened:
        if self._task.lease != self._lease:
            return Opened(Code.LOST, b"")
        kept = self._task.operations.get(name)
        if kept is not None and kept.result is not None:
            return Opened(Code.DONE, kept.result)
        in_doubt = kept is not None
        if rerun or not in_doubt:
            self._task.operations[name] = _Kept(self._lease, nonce, in_doubt)
        return Opened(Code.DOUBT if in_doubt else Code.OK, b"")

    def _end(self, name: str, nonce: str, result: bytes | None) -> Code:
        kept = self._task.operations.get(name)
        if self._task.lease != self._lease or kept is None or kept.nonce != nonce:
            return Code.LOST
        if result is not None:
            kept.result = result
        elif not kept.in_doubt:
            del self._task.operations[name]
        return Code.OK


def _answered(answer: T) -> Future[T]:
    future: Future[T] = Future()
    future.set_result(answer)
    return future
