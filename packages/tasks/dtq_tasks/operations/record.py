"""The record of one run of an operation: what every kind of it can do, and the one in Redis."""

from __future__ import annotations

import asyncio
import concurrent.futures
from concurrent.futures import Future
from typing import Literal, NamedTuple, Protocol, TypeVar
from uuid import uuid4

from dtq_core.calls import Opened
from dtq_core.errors import (
    CorruptDataError,
    OperationBusyError,
    OperationInDoubtError,
    OperationLostError,
)
from dtq_core.scripts import Code
from dtq_tasks.operations.scope import OperationScope
from dtq_tasks.operations.token import token_of

T = TypeVar("T")
OnDoubt = Literal["rerun", "raise"]
OnBusy = Literal["wait", "raise"]


class Begun(NamedTuple):
    """What the begin of a run found.

    Attributes:
        result: of an operation that is done, its result as JSON, empty where it could not be kept;
            None where this run is to do it.
        in_doubt: whether an earlier run was cut off, and this one goes on all the same.
    """

    result: bytes | None
    in_doubt: bool = False


class Record(Protocol):
    """The record of one run."""

    def begin(self) -> Begun:
        """Begin the run, unless the operation is done."""
        ...

    async def begin_async(self) -> Begun:
        """Do the same on an event loop."""
        ...

    def end(self, result: bytes | None) -> None:
        """End the run: result as JSON, empty where it cannot be kept; None if it failed."""
        ...

    async def end_async(self, result: bytes | None) -> None:
        """Do the same on an event loop."""
        ...

    def cut(self) -> None:
        """Leave the run as it is: it was cut off."""
        ...


class KeptRecord:
    """The record that an attempt's port keeps, in Redis as a rule."""

    def __init__(
        self, scope: OperationScope, name: str, on_doubt: OnDoubt, on_busy: OnBusy
    ) -> None:
        self._scope = scope
        self._name = name
        self._rerun = on_doubt == "rerun"
        self._wait = on_busy == "wait"
        self._nonce = uuid4().hex

    def begin(self) -> Begun:
        """Begin; errors as :func:`dtq_tasks.idempotent_operation`."""
        while (other := self._occupy()) is not None:
            other.result()
        try:
            return self._begun(self._received(self._send_begin()))
        except BaseException:
            self.cut()
            raise

    async def begin_async(self) -> Begun:
        """Begin; as :meth:`begin`."""
        while (other := self._occupy()) is not None:
            await _on_loop(other)
        try:
            return self._begun(await _on_loop(self._send_begin()))
        except BaseException:
            self.cut()
            raise

    def end(self, result: bytes | None) -> None:
        """End; errors as :func:`dtq_tasks.idempotent_operation`."""
        try:
            self._check(self._received(self._send_end(result)))
        finally:
            self.cut()

    async def end_async(self, result: bytes | None) -> None:
        """End; as :meth:`end`."""
        try:
            self._check(await _on_loop(self._send_end(result)))
        finally:
            self.cut()

    def cut(self) -> None:
        """Let the next run have the operation; in the record it stays begun."""
        self._scope.leave(self._name)

    def _occupy(self) -> Future[None] | None:
        other = self._scope.occupy(self._name)
        if other is not None and not self._wait:
            raise OperationBusyError(self._name, "another run is under way in this attempt")
        return other

    def _send_begin(self) -> Future[Opened]:
        return self._scope.port.begin(self._name, self._nonce, rerun=self._rerun)

    def _send_end(self, result: bytes | None) -> Future[Code]:
        return self._scope.port.end(self._name, self._nonce, result)

    def _begun(self, opened: Opened) -> Begun:
        if opened.code is Code.DONE:
            self._scope.leave(self._name)
            return Begun(opened.result)
        if opened.code is Code.DOUBT:
            if not self._rerun:
                raise OperationInDoubtError(self._name, token_of(self._scope.task_id, self._name))
            return Begun(None, in_doubt=True)
        self._check(opened.code)
        return Begun(None)

    def _check(self, code: Code) -> None:
        if code is Code.CORRUPT:
            raise CorruptDataError(f"operation {self._name}: its record or its task is not ours")
        if code not in {Code.OK, Code.AGAIN}:
            raise self._lost()

    def _received(self, future: Future[T]) -> T:
        try:
            return future.result()
        except concurrent.futures.CancelledError:  # the worker has stopped
            raise self._lost() from None

    def _lost(self) -> OperationLostError:
        return OperationLostError(
            self._name, "this attempt is over, and another one may run already"
        )


async def _on_loop(future: Future[T]) -> T:
    """Wait for a future; cancelling the wait does not cancel what others may wait for, too."""
    return await asyncio.shield(asyncio.wrap_future(future))
