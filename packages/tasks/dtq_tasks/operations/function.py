"""A function as an operation sees it: its token and session parameters, its result's type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from dtq_core.errors import InvalidOptionError
from dtq_tasks.injection import Injection
from dtq_tasks.operations.token import OperationToken
from dtq_tasks.parameters import Call
from dtq_tasks.typehints import ResultReader, resolve

SESSION = "session"
"""The parameter that takes the session of the SQL form."""


class GuardedFunction:
    """One function that is guarded. Its annotations are looked at when it is first called."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        """Take a function.

        Args:
            name: of the operation.
            function: a ``def`` or ``async def``, or anything else that is called alike.
        """
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self._name = name

    def with_token(self, call: Call, token: OperationToken) -> Call:
        """Return the arguments with the token among them, where the function takes it."""
        return self._injection.merge(call, token)

    def session_in(self, call: Call) -> Any:
        """Return what was given for its parameter ``session``, None where it has none."""
        signature = self._injection.signature
        if SESSION not in signature.parameters:
            return None
        args, kwargs = call
        return signature.bind_partial(*args, **kwargs).arguments.get(SESSION)

    def with_session(self, call: Call, session: Any) -> Call:
        """Return the arguments with the session among them, where the function takes it."""
        args, kwargs = call
        if SESSION not in self._injection.signature.parameters:
            return call
        return args, {**kwargs, SESSION: session}

    def read_result(self, text: bytes) -> Any:
        """Return a result that was kept, in the type that the function says it returns."""
        return self._reader.read(text)

    @functools.cached_property
    def _injection(self) -> Injection:
        try:
            signature = inspect.signature(self.function)
        except ValueError:  # some functions in C do not tell
            signature = inspect.Signature()
        types = {
            parameter.name: self._resolved(parameter.annotation)
            for parameter in signature.parameters.values()
        }
        return Injection(f"operation {self._name}", signature, types, OperationToken)

    @functools.cached_property
    def _reader(self) -> ResultReader:
        return ResultReader(self.function, f"the result of operation {self._name}")

    def _resolved(self, annotation: Any) -> Any:
        """What an annotation stands for; one that nobody can read is no token's."""
        try:
            return resolve(annotation, self.function, f"a parameter of operation {self._name}")
        except (InvalidOptionError, AttributeError):  # partial objects have no module of their own
            return Any
