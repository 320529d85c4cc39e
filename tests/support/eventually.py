"""Waiting for a condition, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT_S = 15.0


def eventually(what: str, probe: Callable[[], T], limit_s: float = LIMIT_S) -> T:
    """Wait until a probe answers something true, and return that."""
    end = time.monotonic() + limit_s
    while not (found := probe()):
        assert time.monotonic() < end, f"waited {limit_s:g} s for: {what}"
        time.sleep(0.01)
    return found
