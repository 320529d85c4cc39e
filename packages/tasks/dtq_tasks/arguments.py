"""Arguments to payload and back: JSON of ``[args, kwargs]``, typed at both ends.

The sender decodes what it encoded, by the very decoder that the worker uses. A value of the wrong
type, or one that JSON would change on its way, is thus refused where it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from reprlib import repr as shortened
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from dtq_core import codec
from dtq_core.errors import EncodingError, InvalidArgumentsError
from dtq_tasks.compare import same
from dtq_tasks.parameters import Bound, Call, Parameters, Slot
from dtq_tasks.refusals import of_argument
from dtq_tasks.typehints import unchecked_decoder

_undecoded = msgspec.json.Decoder(tuple[tuple[msgspec.Raw, ...], dict[str, msgspec.Raw]])


class Arguments:
    """Encodes and decodes the arguments of one task."""

    def __init__(self, task_name: str, parameters: Parameters) -> None:
        self._task_name = task_name
        self._parameters = parameters
        self._keywords = [slot.name for slot in parameters.by_keyword]
        self._decoder = unchecked_decoder(_payload_type(parameters))

    def encode(self, given_args: Sequence[Any], given_kwargs: Mapping[str, Any]) -> bytes:
        """Return arguments as a payload.

        Raises:
            InvalidArgumentsError: if they do not fit the signature or their types, have no JSON
                form, or would arrive as other values. It names the argument.
        """
        args, kwargs = self._parameters.bind(tuple(given_args), given_kwargs)
        try:
            payload = codec.encode((args, kwargs), f"the arguments of {self._task_name}")
        except EncodingError as error:
            self._refuse_culprit(args, kwargs)
            raise InvalidArgumentsError(str(error)) from None
        arrived = self.decode(payload)
        if not same((args, kwargs), arrived):
            self._refuse_changed((args, kwargs), arrived)
        return payload

    def decode(self, payload: bytes) -> Call:
        """Return the arguments in a payload.

        Raises:
            InvalidArgumentsError: if it is not ``[args, kwargs]``, or these do not fit the
                signature or their types. It names the argument.
        """
        try:
            positional, named = self._decoder.decode(payload)
        except Exception:  # an unusual form, or a wrong argument: the slow way can tell
            return self._decode_each(payload)
        args = astuple(positional)
        if args and args[-1] is UNSET:
            args = tuple(value for value in args if value is not UNSET)
        if not self._keywords:
            return args, {}
        pairs = zip(self._keywords, astuple(named), strict=True)
        return args, {name: value for name, value in pairs if value is not UNSET}

    def _decode_each(self, payload: bytes) -> Call:
        try:
            raw_args, raw_kwargs = _undecoded.decode(payload)
        except Exception as error:  # not JSON, not of this form, too deep
            raise InvalidArgumentsError(
                f"the payload of {self._task_name} is not [args, kwargs]: {error}"
            ) from None
        args, kwargs = self._parameters.bind(raw_args, raw_kwargs)
        values = [self._decode_one(bound) for bound in self._parameters.walk(args, kwargs)]
        return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))

    def _decode_one(self, bound: Bound) -> Any:
        try:
            return bound.decoder.decode(bound.value)
        except msgspec.ValidationError as error:
            reason = str(error)
        except Exception as error:  # a validation of the user's own may raise anything
            reason = codec.describe(error)
        raise InvalidArgumentsError(f"{self._task_name}: {of_argument(bound.name, reason)}")

    def _refuse_culprit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for bound in self._parameters.walk(args, kwargs):
            try:
                codec.encode([[bound.value]], f"{self._task_name}: argument {bound.name!r}")
            except EncodingError as error:
                raise InvalidArgumentsError(str(error)) from None

    def _refuse_changed(self, sent: Call, arrived: Call) -> None:
        pairs = zip(self._parameters.walk(*sent), self._parameters.walk(*arrived), strict=True)
        for before, after in pairs:
            if not same(before.value, after.value):
                raise InvalidArgumentsError(
                    f"{self._task_name}: argument {before.name!r} would arrive as "
                    f"{shortened(after.value)}, not as {shortened(before.value)}: "
                    "annotate the parameter with its type"
                )


def _payload_type(parameters: Parameters) -> Any:
    """The type of a payload with each argument where :meth:`Parameters.bind` puts it."""
    positional = _struct(parameters.by_position, array_like=True)
    named = _struct(parameters.by_keyword, array_like=False)
    return tuple[positional, named]  # type: ignore[valid-type]


def _struct(slots: list[Slot], *, array_like: bool) -> type[msgspec.Struct]:
    """A struct with one field a parameter, UNSET where an optional one is not given.

    Fields have names of our own, which cannot collide with what a struct has itself.
    """
    fields: list[Any] = []
    for index, slot in enumerate(slots):
        default = () if slot.required else (UNSET,)
        fields.append((f"field_{index}", slot.decoder.type, *default))
    return msgspec.defstruct(
        "Arguments",
        fields,
        rename={f"field_{index}": slot.name for index, slot in enumerate(slots)},
        array_like=array_like,
        forbid_unknown_fields=True,
        kw_only=True,
    )
