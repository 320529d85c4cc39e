"""`Client` and `AsyncClient` differ in one thing: the methods of the second are awaited."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from dtq import AsyncClient, AsyncHandle, Client, Handle

PAIRS = [(Client, AsyncClient), (Handle, AsyncHandle)]
AT_ONCE = {"handle"}
"""What sends nothing, and is not awaited in either."""


def methods(cls: type[Any]) -> dict[str, Callable[..., Any]]:
    return {
        name: value
        for name, value in vars(cls).items()
        if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_"))
    }


def signature(method: Callable[..., Any]) -> str:
    return re.sub(r"Async(Client|Handle)", r"\1", str(inspect.signature(method)))


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_both_have_the_same_methods_with_the_same_signatures(
    blocking: type[Any], awaited: type[Any]
) -> None:
    one, other = methods(blocking), methods(awaited)
    assert list(one) == list(other)
    assert {n: signature(m) for n, m in one.items()} == {n: signature(m) for n, m in other.items()}


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_all_that_may_send_is_awaited(blocking: type[Any], awaited: type[Any]) -> None:
    for name in methods(blocking).keys() - AT_ONCE - {"__init__"}:
        assert not inspect.iscoroutinefunction(getattr(blocking, name))
        assert inspect.iscoroutinefunction(getattr(awaited, name)), name
