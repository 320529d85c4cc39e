"""``idempotent_operation``: one name for the call, the decorator and the block."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from dtq_tasks.operations.function import GuardedFunction
from dtq_tasks.operations.guard import Guard
from dtq_tasks.operations.record import OnBusy, OnDoubt
from dtq_tasks.operations.sessions import is_session
from dtq_tasks.operations.token import OperationToken
from dtq_tasks.parameters import Call

P = ParamSpec("P")
R = TypeVar("R")
Async = Coroutine[Any, Any, R]
_OPTIONS = ("on_doubt", "on_busy", "session")


class OperationGuard(Guard):
    """What :func:`idempotent_operation` returns without a function: a decorator, and a block."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[OperationToken, P], Async[R]], /
    ) -> Callable[P, Async[R]]: ...
    @overload
    def __call__(self, function: Callable[P, Async[R]], /) -> Callable[P, Async[R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[OperationToken, P], R], /
    ) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Guard every call of a function.

        Args:
            function: a ``def`` or ``async def``. A parameter annotated :class:`OperationToken` is
                filled in. Where its parameter ``session`` gets a session of SQLAlchemy, the record
                is written in the transaction of that one.

        Returns:
            The function, guarded, without the token among its parameters.
        """
        guarded = GuardedFunction(self._name, function)

        @functools.wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            guard, call = self._prepare(guarded, (args, kwargs))
            async with guard as operation:
                if not operation.done:
                    args, kwargs = guarded.with_token(call, operation.token)
                    operation.result = await function(*args, **kwargs)
            return guarded.read_result(guard.kept)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            guard, call = self._prepare(guarded, (args, kwargs))
            with guard as operation:
                if not operation.done:
                    args, kwargs = guarded.with_token(call, operation.token)
                    operation.result = function(*args, **kwargs)
            return guarded.read_result(guard.kept)

        return run_async if guarded.is_async else run

    def _prepare(self, guarded: GuardedFunction, call: Call) -> tuple[Guard, Call]:
        """Make the guard of one call, and the arguments that the function gets."""
        session = self._session
        if session is not None:
            call = guarded.with_session(call, session)
        elif is_session(given := guarded.session_in(call)):
            session = given
        return Guard(self._name, self._on_doubt, self._on_busy, session), call


@overload
def idempotent_operation(
    name: str, /, *, on_doubt: OnDoubt = ..., on_busy: OnBusy = ..., session: Any = ...
) -> OperationGuard: ...
@overload
def idempotent_operation(
    name: str, function: Callable[..., Async[R]], /, *args: Any, session: Any, **kwargs: Any
) -> Async[R]: ...
@overload
def idempotent_operation(
    name: str, function: Callable[..., R], /, *args: Any, session: Any, **kwargs: Any
) -> R: ...
@overload
def idempotent_operation(
    name: str,
    function: Callable[..., Async[R]],
    /,
    *args: Any,
    on_doubt: OnDoubt,
    on_busy: OnBusy = ...,
    **kwargs: Any,
) -> Async[R]: ...
@overload
def idempotent_operation(  # type: ignore[overload-overlap]
    name: str,
    function: Callable[..., R],
    /,
    *args: Any,
    on_doubt: OnDoubt,
    on_busy: OnBusy = ...,
    **kwargs: Any,
) -> R: ...
@overload
def idempotent_operation(
    name: str,
    function: Callable[Concatenate[OperationToken, P], Async[R]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> Async[R]: ...
@overload
def idempotent_operation(
    name: str, function: Callable[P, Async[R]], /, *args: P.args, **kwargs: P.kwargs
) -> Async[R]: ...
@overload
def idempotent_operation(
    name: str,
    function: Callable[Concatenate[OperationToken, P], R],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> R: ...
@overload
def idempotent_operation(
    name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R: ...


def idempotent_operation(
    name: str, function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any
) -> Any:
    """Run one side effect of a handler so that later attempts of the task do not repeat it.

    ::

        receipt = await idempotent_operation("charge", charge, order)

    The result is kept under the task's id and the name, and a later attempt gets it without running
    the function again. Without a function this returns a decorator, which is also a block for
    ``with`` and ``async with``.

    Args:
        name: of the operation, different from all others in the handler.
        function: what has the effect. An ``async def`` gives an awaitable; a ``def`` runs at once,
            and never on the event loop. A parameter annotated :class:`OperationToken` is filled in.
        *args: of the function.
        **kwargs: likewise.
        on_doubt: where an earlier run was cut off, so that nobody knows whether its effect has
            happened: ``"rerun"`` runs it again, ``"raise"`` raises.
        on_busy: where another run is under way in the same attempt: ``"wait"`` waits for its
            result, ``"raise"`` raises.
        session: a ``Session`` or ``AsyncSession`` of SQLAlchemy. The record is then written in its
            transaction, which is the caller's to commit. A function with a parameter of that name
            gets it.

    Returns:
        What the function returned, in this attempt or an earlier one, read back from its JSON.

    Raises:
        OperationInDoubtError: as ``on_doubt`` says.
        OperationBusyError: as ``on_busy`` says.
        OperationLostError: if the attempt is no longer the task's current one.
        OperationResultError: if what it returned, now or earlier, cannot be kept.
        OperationUsageError: outside a handler, in itself, or as a ``def`` on the event loop.
        InvalidNameError: for a bad name.
        RedisError: if the record cannot be read or written.
    """
    options = {key: kwargs.pop(key) for key in _OPTIONS if key in kwargs}
    guard = OperationGuard(name, **options)
    if function is None:
        return guard
    guarded: Callable[..., Any] = guard(function)
    return guarded(*args, **kwargs)
