"""A server without memory refuses before the first write, or takes the whole call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dtq_core.decide import Finish
from scripts.table import LONG_MS, Table

pytestmark = pytest.mark.ledger_checked


@contextmanager
def _full(table: Table) -> Iterator[None]:
    table.redis("CONFIG", "SET", "maxmemory", 1)
    try:
        yield
    finally:
        table.redis("CONFIG", "SET", "maxmemory", 0)


BATCHES: dict[str, Callable[[Table], object]] = {
    "submit": lambda table: table.submit_all(
        table.submission(idempotency_key="k"), table.submission(delay=1), table.submission(ttl=9)
    ),
    "finish": lambda table: table.finish(
        *(Finish.succeeded(claim, b"1", LONG_MS) for claim in table.adopt("w1").claims)
    ),
    "watch and cancel": lambda table: table.cancel("e" * 32, *_running(table)),
    "beat": lambda table: table.beat("w9"),
    "lead": lambda table: table.lead("s1"),
}


def _running(table: Table) -> list[str]:
    names = table.redis("KEYS", table.keys.task("*"))
    return [name.decode().removeprefix(table.keys.task("")) for name in names]
