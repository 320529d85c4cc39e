"""Whether what arrives at a handler is what was sent to it."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from dtq_core import codec

_PLAIN = frozenset({str, int, float, bool, NoneType, list, tuple, dict})
"""What JSON itself can say."""
_ARRAYS = frozenset({list, tuple})


def same(sent: Any, arrived: Any) -> bool:
    """Tell whether a value survived the way through JSON.

    Equal values did. So did a tuple that became a list of the same items or the other way round, a
    plain value that the parameter's annotation turned into a richer one (``"2030-01-01"`` into a
    date), and an object that compares by identity if its JSON form is unchanged.
    """
    if _equal(sent, arrived):
        return True
    if type(sent) in _ARRAYS and type(arrived) in _ARRAYS:
        return len(sent) == len(arrived) and all(map(same, sent, arrived))
    if isinstance(arrived, dict) and isinstance(sent, Mapping):
        return sent.keys() == arrived.keys() and all(same(sent[key], arrived[key]) for key in sent)
    if type(sent) in _PLAIN:
        return type(arrived) not in _PLAIN
    return type(sent) is type(arrived) and codec.encode(sent, "") == codec.encode(arrived, "")


def _equal(sent: Any, arrived: Any) -> bool:
    try:
        return bool(sent == arrived)
    except Exception:  # a comparison of the user's own may raise anything
        return False
