"""Operations of handlers: their records in Redis, kept through the worker's own connections."""

from __future__ import annotations

import asyncio
import math
import threading
from concurrent.futures import Future
from typing import Any, TypeVar

from dtq_core.calls import Call, Calls, Opened, OperationRun
from dtq_core.limits import check_duration_ms
from dtq_core.record import Claim
from dtq_core.scripts import Code
from dtq_core.settings import Settings
from dtq_core.store import AsyncStore
from dtq_tasks.operations.scope import OperationScope

T = TypeVar("T")


class Operations:
    """Sends what operations say, from any thread, on the loop of the worker."""

    def __init__(self, store: AsyncStore, settings: Settings) -> None:
        """Set up.

        Args:
            store: to send through.
            settings: of this process.
        """
        self._store = store
        self._ttl_ms = check_duration_ms("operation_ttl", settings.operation_ttl)
        self._max_result_bytes = settings.max_result_bytes
        self._lock = threading.Lock()
        self._under_way: set[Future[Any]] = set()
        self._open = True

    def of(self, claim: Claim) -> OperationScope:
        """Return what the operations of one attempt belong to. On the loop's thread."""
        port = _Port(self, self._store.calls_of(claim.task_id), claim, self._ttl_ms)
        return OperationScope(claim.task_id, port, self._max_result_bytes)

    def send(
        self, call: Call[T], loop: asyncio.AbstractEventLoop, retry_s: float | None = None
    ) -> Future[T]:
        """Run a call; once the worker is closed, it counts as cancelled. From any thread."""
        with self._lock:
            if not self._open:
                return _cancelled()
            work = self._store.run(call, retry_s=retry_s)
            future = asyncio.run_coroutine_threadsafe(work, loop)
            self._under_way.add(future)
        future.add_done_callback(self._ended)
        return future

    def close(self) -> None:
        """Let no handler wait for an answer any more."""
        with self._lock:
            self._open = False
            left = list(self._under_way)
        for future in left:
            future.cancel()

    def _ended(self, future: Future[Any]) -> None:
        with self._lock:
            self._under_way.discard(future)


class _Port:
    """The records of one attempt."""

    def __init__(self, operations: Operations, calls: Calls, claim: Claim, ttl_ms: int) -> None:
        self._operations = operations
        self._calls = calls
        self._claim = claim
        self._ttl_ms = ttl_ms
        self._loop = asyncio.get_running_loop()

    def begin(self, name: str, nonce: str, *, rerun: bool) -> Future[Opened]:
        call = self._calls.op_begin(self._run(name, nonce), self._ttl_ms, rerun=rerun)
        return self._operations.send(call, self._loop)

    def end(self, name: str, nonce: str, result: bytes | None) -> Future[Code]:
        """The effect has happened: this waits for Redis as long as it takes."""
        call = self._calls.op_end(self._run(name, nonce), result, self._ttl_ms)
        return self._operations.send(call, self._loop, retry_s=math.inf)

    def _run(self, name: str, nonce: str) -> OperationRun:
        return OperationRun(self._claim.task_id, self._claim.lease, name, nonce)


def _cancelled() -> Future[Any]:
    future: Future[Any] = Future()
    future.cancel()
    return future
