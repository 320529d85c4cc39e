"""From an annotation to a decoder: resolved and checked when the task is declared, strict after.

msgspec converts what it knows: dataclass, Struct, TypedDict, NamedTuple, enum, datetime, UUID,
Decimal, bytes, collections, unions. A class with ``model_validate`` (pydantic) converts itself.
Anything else has no JSON form and is refused at once, not by the first task.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec
from msgspec.inspect import CustomType, Field, Type, type_info

from dtq_core import codec
from dtq_core.errors import InvalidOptionError
from dtq_tasks.refusals import of_model


def resolve(annotation: Any, function: Callable[..., Any], what: str) -> Any:
    """Return the type that an annotation stands for, ``Any`` where there is none.

    Args:
        annotation: as the function's signature gives it, text included.
        function: whose annotation it is; text may use the names of its module.
        what: what is annotated, for the message ("parameter 'user_id' of send_welcome").

    Raises:
        InvalidOptionError: if it names something that does not exist (yet).
    """
    if annotation is inspect.Parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={"it": annotation})
    namespace = inspect.unwrap(function).__globals__
    try:
        return get_type_hints(holder, globalns=namespace, include_extras=True)["it"]
    except Exception as error:  # evaluating text may raise anything
        raise InvalidOptionError(
            f"the annotation {annotation!r} of {what} cannot be resolved ({error}): define or "
            "import it above the task, at module level, not under TYPE_CHECKING"
        ) from None


def resolve_all(
    signature: inspect.Signature, function: Callable[..., Any], task_name: str
) -> dict[str, Any]:
    """Return the type of every parameter. Errors as :func:`resolve`."""
    return {
        name: resolve(parameter.annotation, function, f"parameter {name!r} of {task_name}")
        for name, parameter in signature.parameters.items()
    }


def decoder(annotated: Any, what: str) -> msgspec.json.Decoder[Any]:
    """Return a strict decoder for a type.

    Args:
        annotated: the type, resolved.
        what: what is annotated, for the message.

    Raises:
        InvalidOptionError: if values of this type cannot come out of JSON.
    """
    try:
        for cls in _foreign_classes(type_info(annotated)):
            if not hasattr(cls, "model_validate"):
                raise TypeError(f"{cls.__qualname__} has no JSON form")
        return unchecked_decoder(annotated)
    except Exception as error:  # names inside a class are resolved here, too
        raise InvalidOptionError(
            f"the type of {what} cannot come out of JSON ({error}): use plain values, "
            "dataclasses, or other types that msgspec converts"
        ) from None


def unchecked_decoder(annotated: Any) -> msgspec.json.Decoder[Any]:
    """Return a strict decoder for a type whose parts have been checked before."""
    return msgspec.json.Decoder(annotated, dec_hook=_validate_foreign)


class ResultReader:
    """Reads what a function returned, from its JSON, into the type that it says it returns.

    Where it does not say, or the text does not fit, it comes as plain JSON values.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        """Take a function.

        Args:
            function: whose annotation counts.
            what: what is read, for messages ("the result of send_welcome").
        """
        self._what = what
        try:
            annotation = inspect.signature(function).return_annotation
            self._decoder = decoder(resolve(annotation, function, what), what)
        except (InvalidOptionError, ValueError, AttributeError):  # made in C, or of other parts
            self._decoder = decoder(Any, what)

    def read(self, text: bytes) -> Any:
        """Return the value.

        Raises:
            EncodingError: if the text is not JSON.
        """
        try:
            return self._decoder.decode(text)
        except Exception:  # a validation of the user's own may raise anything
            return codec.decode(text, self._what)


def _validate_foreign(cls: Any, value: Any) -> Any:
    try:
        return cls.model_validate(value)
    except ValueError as error:
        reason = of_model(cls, error)
        if reason is None:
            raise
        raise ValueError(reason) from None


def _foreign_classes(root: Type) -> Iterator[type]:
    """Yield each class within a type that msgspec leaves to a hook; types may be recursive."""
    seen: set[int] = set()
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, CustomType):
            yield node.cls
        elif isinstance(node, Field):
            stack.append(node.type)
        elif isinstance(node, tuple):
            stack.extend(node)
        elif isinstance(node, Type) and id(node) not in seen:
            seen.add(id(node))
            stack.extend(getattr(node, name) for name in node.__struct_fields__)
