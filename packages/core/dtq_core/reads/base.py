"""What every read is: commands, and what their replies mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """Commands of one round trip, and the decoder of their replies.

    Attributes:
        commands: what is sent.
        decode: makes the result of the replies.
        tolerant: whether a key of a wrong type is answered with None, not with an error.
    """

    commands: Sequence[Sequence[Any]]
    decode: Callable[[list[Any]], T]
    tolerant: bool = False


class Page(NamedTuple):
    """Part of a walk: the names that it met, and where to go on; 0 is the end."""

    names: list[str]
    cursor: int
