"""Where a function takes what is not its caller's to give: any one parameter annotated with it.

A handler takes its :class:`Context` so, a guarded operation its token.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from itertools import takewhile
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from dtq_core.errors import InvalidOptionError
from dtq_tasks.parameters import Call


class Injection:
    """Puts an object of one class where a function takes it.

    Attributes:
        parameter: the name of the one that takes it, None where there is none.
        reserved: the same, where it could be given by keyword.
        signature: all the others.
    """

    def __init__(
        self, owner: str, signature: Signature, types: Mapping[str, Any], wanted: type
    ) -> None:
        """Find the parameter.

        Args:
            owner: of the function, for messages.
            signature: of the function.
            types: the resolved types of its parameters, by name.
            wanted: the class that the parameter is annotated with.

        Raises:
            InvalidOptionError: if there are several, or if it is ``*args`` or ``**kwargs``.
        """
        everything = list(signature.parameters.values())
        found = [each for each in everything if _stands_for(types[each.name], wanted)]
        if len(found) > 1:
            kind = wanted.__name__
            raise InvalidOptionError(f"more than one parameter of {owner} is annotated {kind}")
        self.parameter = found[0].name if found else None
        self.signature = signature.replace(
            parameters=[each for each in everything if each.name != self.parameter]
        )
        self._kind = found[0].kind if found else None
        if self._kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
            raise InvalidOptionError(
                f"{self.parameter} of {owner} takes many: no {wanted.__name__}"
            )
        self.reserved = None if self._kind is Parameter.POSITIONAL_ONLY else self.parameter
        self._before = list(takewhile(lambda each: each.name != self.parameter, everything))

    def merge(self, call: Call, given: Any) -> Call:
        """Return the arguments of a call with the object among them."""
        if self.parameter is None:
            return call
        args, kwargs = call
        position = len(self._before)
        if self._kind is Parameter.POSITIONAL_ONLY:
            args += tuple(parameter.default for parameter in self._before[len(args) :])
        if self._kind is Parameter.KEYWORD_ONLY or len(args) < position:
            return args, {**kwargs, self.parameter: given}
        return (*args[:position], given, *args[position:]), kwargs


def _stands_for(annotated: Any, wanted: type) -> bool:
    if get_origin(annotated) in {Union, UnionType, Annotated}:
        return any(_stands_for(each, wanted) for each in get_args(annotated))
    return annotated is wanted
