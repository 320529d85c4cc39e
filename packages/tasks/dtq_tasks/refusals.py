"""What the libraries below say of a value that does not fit, in words of our own."""

from __future__ import annotations

import re
from reprlib import repr as shortened
from typing import Any

_PLACE = re.compile(r"(.*?)(?: - at (?:key in )?`\$(.*)`)?", re.DOTALL)
_OTHER_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_OWN_WORDS = frozenset({"value_error", "assertion_error"})
"""Types of a model's errors whose text is that of the model's own validator."""


def of_argument(name: str, reason: str) -> str:
    """Say why an argument is refused.

    Args:
        name: of the argument.
        reason: what msgspec said.
    """
    said = _PLACE.fullmatch(reason)
    assert said is not None, "it matches any text"
    what, path = said.groups()
    place = f", at {path.lstrip('.')}" if path else ""
    if found := _OTHER_TYPE.fullmatch(what):
        return f"argument {name!r} takes {found[1]}, not {found[2]}{place}"
    if found := _MISSING.fullmatch(what):
        return f"argument {name!r} lacks the field {found[1]!r}{place}"
    return f"argument {name!r}: {what}{place}"


def of_model(model: type, error: Exception) -> str | None:
    """Say why a model refuses a value; None where its error is of no known form.

    Args:
        model: the class.
        error: what its validation raised, as pydantic does.
    """
    try:
        first: dict[str, Any] = error.errors()[0]  # type: ignore[attr-defined]
        kind, where = first["type"], ".".join(map(str, first["loc"]))
        place = f"the field {where!r} of {model.__name__}" if where else model.__name__
        if kind == "missing":
            return f"{place} is missing"
        if kind in _OWN_WORDS:
            return f"{place}: {first['ctx']['error']}"
        return f"{place} does not take {shortened(first['input'])} ({kind})"
    except Exception:  # another library's error, or a value that cannot be printed
        return None
