"""What a task takes: which value belongs to which parameter, by Python's own rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import msgspec

from dtq_core.errors import InvalidArgumentsError
from dtq_tasks.typehints import decoder

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""What a function is called with: positional and keyword arguments."""


class Slot(NamedTuple):
    """One parameter.

    Attributes:
        name: as in the signature.
        decoder: for its type.
        required: whether it has no default.
    """

    name: str
    decoder: msgspec.json.Decoder[Any]
    required: bool


class Bound(NamedTuple):
    """One value at its place.

    Attributes:
        name: of the argument.
        decoder: for its type.
        value: what was given.
    """

    name: str
    decoder: msgspec.json.Decoder[Any]
    value: Any


class Parameters:
    """The parameters of one task, without the context.

    Attributes:
        by_position: those that can be given by position, ``*args`` not counted.
        by_keyword: those that can be given by keyword only, ``**kwargs`` not counted.
    """

    def __init__(
        self, task_name: str, signature: Signature, types: Mapping[str, Any], context: str | None
    ) -> None:
        """Sort the parameters by kind and check their types.

        Args:
            task_name: for messages.
            signature: of the handler, without the context.
            types: the resolved types by name.
            context: the name under which the worker fills in the context.

        Raises:
            InvalidOptionError: if values of a type cannot come out of JSON.
        """
        self._task_name = task_name
        self._signature = signature
        self._types = types
        self._context = context
        either = self._slots(Parameter.POSITIONAL_OR_KEYWORD)
        self._unnamed = self._slots(Parameter.POSITIONAL_ONLY)
        self.by_position = self._unnamed + either
        self.by_keyword = self._slots(Parameter.KEYWORD_ONLY)
        self._named = {slot.name: slot for slot in either + self.by_keyword}
        self._rest = self._slots(Parameter.VAR_POSITIONAL)
        self._others = self._slots(Parameter.VAR_KEYWORD)
        self._counts = range(
            sum(slot.required for slot in self.by_position),
            sys.maxsize if self._rest else len(self.by_position) + 1,
        )
        self._keywords = frozenset(slot.name for slot in self.by_keyword)
        self._required = frozenset(slot.name for slot in self.by_keyword if slot.required)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Return the arguments in one form: by position wherever that is possible.

        Raises:
            InvalidArgumentsError: if they do not fit the signature.
        """
        if len(args) in self._counts and self._required <= kwargs.keys() <= self._keywords:
            return args, dict(kwargs)  # it is so already, and asking inspect takes long
        if self._context in kwargs:
            raise InvalidArgumentsError(
                f"{self._task_name}: argument {self._context!r} is filled in by the worker"
            )
        try:
            bound = self._signature.bind(*args, **kwargs)
            for slot in self._unnamed[len(bound.args) :]:
                if slot.required:  # Python 3.13.0 lets one of **kwargs stand in for it
                    raise TypeError(f"missing a required argument: {slot.name!r}")
        except TypeError as error:
            raise InvalidArgumentsError(f"{self._task_name}: {error}") from None
        return bound.args, bound.kwargs

    def walk(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Bound]:
        """Yield each of the arguments, bound before, at its place."""
        slots = self.by_position + self._rest * len(args)
        for slot, value in zip(slots, args, strict=False):
            yield Bound(slot.name, slot.decoder, value)
        for name, value in kwargs.items():
            slot = self._named.get(name) or self._others[0]
            yield Bound(name, slot.decoder, value)

    def _slots(self, kind: Any) -> list[Slot]:
        return [
            Slot(
                name,
                decoder(self._types[name], f"parameter {name!r} of {self._task_name}"),
                parameter.default is Parameter.empty,
            )
            for name, parameter in self._signature.parameters.items()
            if parameter.kind is kind
        ]
