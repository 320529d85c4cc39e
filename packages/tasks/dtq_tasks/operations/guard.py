"""The guard around one side effect: a block, and what it shows of its run."""

from __future__ import annotations

import asyncio
import contextlib
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from dtq_core import codec
from dtq_core.errors import (
    DtqError,
    InputError,
    InvalidOptionError,
    OperationResultError,
    OperationUsageError,
)
from dtq_core.failpoints import reach
from dtq_core.limits import check_name, check_size
from dtq_tasks.operations.record import Begun, KeptRecord, OnBusy, OnDoubt, Record
from dtq_tasks.operations.scope import OperationScope, current_scope
from dtq_tasks.operations.sessions import check_session
from dtq_tasks.operations.token import OperationToken, token_of

_inside: ContextVar[frozenset[str]] = ContextVar("dtq_operations_inside", default=frozenset())


class Operation:
    """One run of a guarded operation.

    Attributes:
        name: of the operation.
        token: to give to the outside as an idempotency key; the same in every attempt.
        done: whether an earlier run has done it; then there is nothing to do.
        in_doubt: whether an earlier run was cut off, so that its effect may have happened.
        result: what it came to, as plain JSON values where an earlier run has done it. Set it to
            have it kept.
    """

    def __init__(self, name: str, token: OperationToken) -> None:
        self.name = name
        self.token = token
        self.done = False
        self.in_doubt = False
        self.result: Any = None


class Guard:
    """Guards one run: a block for ``with`` or ``async with``, entered once."""

    def __init__(
        self,
        name: str,
        on_doubt: OnDoubt = "rerun",
        on_busy: OnBusy = "wait",
        session: Any = None,
    ) -> None:
        """Check the options; nothing is sent before the block is entered.

        Args:
            name: of the operation.
            on_doubt: what to do where an earlier run was cut off.
            on_busy: what to do where another run is under way in this attempt.
            session: of SQLAlchemy, for a record in the caller's own transaction; None for Redis.

        Raises:
            InvalidNameError: for a bad name.
            InvalidOptionError: for an unknown choice, or a session that is none of SQLAlchemy's.
        """
        self._name = check_name("operation name", name)
        self._on_doubt = _one_of("on_doubt", on_doubt, "rerun", "raise")
        self._on_busy = _one_of("on_busy", on_busy, "wait", "raise")
        self._session = check_session(session)
        self._scope: OperationScope
        self._record: Record
        self._operation: Operation | None = None
        self.kept = b""

    def __enter__(self) -> Operation:
        self._refuse_loop()
        return self._enter(self._open().begin())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._leave(error):
            return
        if error is not None:
            with contextlib.suppress(DtqError):  # it stays begun: the next run is in doubt
                self._record.end(None)
            return
        problem = self._encode()
        self._record.end(self.kept)
        self._settle(problem)

    async def __aenter__(self) -> Operation:
        return self._enter(await self._open().begin_async())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._leave(error):
            return
        if error is not None:
            with contextlib.suppress(DtqError):
                await self._record.end_async(None)
            return
        problem = self._encode()
        await self._record.end_async(self.kept)
        self._settle(problem)

    def _open(self) -> Record:
        if self._operation is not None:
            raise OperationUsageError(self._name, "a block is entered once: make another one")
        if self._name in _inside.get():
            raise OperationUsageError(self._name, "it would wait for itself: it runs around this")
        self._scope = current_scope(self._name)
        self._operation = Operation(self._name, token_of(self._scope.task_id, self._name))
        reach("operation.before")
        self._record = self._choose()
        return self._record

    def _choose(self) -> Record:
        if self._session is None:
            return KeptRecord(self._scope, self._name, self._on_doubt, self._on_busy)
        from dtq_tasks.operations.sql import SqlRecord  # the core does without SQLAlchemy

        return SqlRecord(self._session, self._scope.task_id, self._name)

    def _enter(self, begun: Begun) -> Operation:
        assert self._operation is not None
        operation = self._operation
        operation.in_doubt = begun.in_doubt
        if begun.result is None:
            _inside.set(_inside.get() | {self._name})
            reach("operation.begun")
            return operation
        if not begun.result:
            raise OperationResultError(self._name, "it was done, but its result was not kept")
        operation.done, self.kept = True, begun.result
        operation.result = codec.decode(begun.result, self._what)
        return operation

    def _leave(self, error: BaseException | None) -> bool:
        """Whether nothing is left to do: it was done before, or is cut off now."""
        assert self._operation is not None
        if self._operation.done:
            return True
        _inside.set(_inside.get() - {self._name})
        if error is None or isinstance(error, Exception):
            return False
        self._record.cut()
        return True

    def _encode(self) -> InputError | None:
        """Encode the result; return why it cannot be kept, if so."""
        assert self._operation is not None
        reach("operation.ran")
        try:
            self.kept = codec.encode(self._operation.result, self._what)
            check_size(self._what, len(self.kept), self._scope.max_result_bytes)
        except InputError as error:
            self.kept = b""
            return error
        return None

    def _settle(self, problem: InputError | None) -> None:
        if problem is not None:
            raise OperationResultError(self._name, f"its result cannot be kept: {problem}")
        reach("operation.after")

    def _refuse_loop(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise OperationUsageError(
            self._name,
            "a plain function or block would hold up the event loop: make it async, "
            "or run it with asyncio.to_thread",
        )

    @property
    def _what(self) -> str:
        return f"the result of operation {self._name}"


def _one_of(option: str, value: Any, *choices: str) -> Any:
    if value not in choices:
        raise InvalidOptionError(f"{option} {value!r} does not exist: use {' or '.join(choices)}")
    return value
