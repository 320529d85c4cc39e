"""Where a handler takes its :class:`Context`: any one parameter annotated with it, anywhere.

That parameter is the worker's to fill, hence no part of what is submitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from itertools import takewhile
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from dtq_core.errors import InvalidOptionError
from dtq_tasks.context import Context
from dtq_tasks.parameters import Call


class Injection:
    """Puts the context where one handler takes it.

    Attributes:
        parameter: the name of the one that takes it, None where there is none.
        reserved: the same, where it could be given by keyword.
        signature: all the others.
    """

    def __init__(self, task_name: str, signature: Signature, types: Mapping[str, Any]) -> None:
        """Find the parameter.

        Args:
            task_name: for messages.
            signature: of the handler.
            types: the resolved types of its parameters, by name.

        Raises:
            InvalidOptionError: if there are several, or if it is ``*args`` or ``**kwargs``.
        """
        everything = list(signature.parameters.values())
        found = [parameter for parameter in everything if _is_context(types[parameter.name])]
        if len(found) > 1:
            raise InvalidOptionError(f"more than one parameter of {task_name} is a Context")
        self.parameter = found[0].name if found else None
        self.signature = signature.replace(
            parameters=[each for each in everything if each.name != self.parameter]
        )
        self._kind = found[0].kind if found else None
        if self._kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
            raise InvalidOptionError(f"{self.parameter} of {task_name} takes many: no Context")
        self.reserved = None if self._kind is Parameter.POSITIONAL_ONLY else self.parameter
        self._before = list(takewhile(lambda each: each.name != self.parameter, everything))

    def merge(self, call: Call, context: Context) -> Call:
        """Return the arguments of a task with its context among them."""
        if self.parameter is None:
            return call
        args, kwargs = call
        position = len(self._before)
        if self._kind is Parameter.POSITIONAL_ONLY:
            args += tuple(parameter.default for parameter in self._before[len(args) :])
        if self._kind is Parameter.KEYWORD_ONLY or len(args) < position:
            return args, {**kwargs, self.parameter: context}
        return (*args[:position], context, *args[position:]), kwargs


def _is_context(annotated: Any) -> bool:
    if get_origin(annotated) in {Union, UnionType, Annotated}:
        return any(map(_is_context, get_args(annotated)))
    return annotated is Context
