"""Errors of usage in plain words; the library that reads the command line has words of its own."""

from __future__ import annotations

import re

_INVALID = re.compile(r"Invalid value for '([^']+)'(?: / '[^']+')*: (.*)", re.DOTALL)
_CHOICE = re.compile(r"Value error, ('.*') is not one of (.*)", re.DOTALL)
_KINDS = {
    "Input should be a valid number": "a number",
    "Input should be a finite number": "a finite number",
    "Input should be a valid integer": "a whole number",
}


def in_plain_words(message: str) -> str:
    """Return what is wrong, with the option or argument that it is wrong with."""
    found = _INVALID.fullmatch(message)
    if found is None:
        return message
    name, reason = found.groups()
    for said, kind in _KINDS.items():
        if reason.startswith(said):
            return f"{name} takes {kind}"
    if choice := _CHOICE.fullmatch(reason):
        given, known = choice.groups()
        return f"{name} {given} is not one of {known.replace(chr(39), '')}"
    return f"{name} is refused: {reason.removeprefix('Value error, ')}"
