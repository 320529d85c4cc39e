"""The writes of an outcome come in the order of the contract, the acknowledgement last."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import pytest

from scripts.table import LONG_MS, Table

WRITES = {"RPUSH", "HSET", "SET", "XADD", "ZADD", "XACK", "XDEL"}


@contextmanager
def monitored(table: Table) -> Iterator[Callable[[], list[tuple[str, str]]]]:
    """Listen to every command of the server; what is yielded returns each (command, key)."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(unquote(urlsplit(table.store.url).path))
        connection.settimeout(5)
        connection.sendall(b"MONITOR\r\n")
        lines = connection.makefile("r")
        assert lines.readline().startswith("+OK")

        def heard() -> list[tuple[str, str]]:
            table.redis("ECHO", "the end")
            found = []
            while '"ECHO"' not in (line := lines.readline()):
                words = line.split('"')
                if len(words) > 3:
                    found.append((words[1].upper(), words[3]))
            return found

        yield heard


def _named(table: Table, task_id: str, writes: list[tuple[str, str]]) -> list[str]:
    """Writes as the contract names them; counters and retention are none of its concern."""
    keys = table.keys
    names = {
        ("RPUSH", keys.attempts(task_id)): "attempt",
        ("HSET", keys.task(task_id)): "hash",
        ("SET", keys.result(task_id)): "result",
        ("XADD", keys.events): "event",
        ("XADD", keys.dlq): "dlq",
        ("ZADD", keys.retry_schedule): "schedule",
        ("HSET", keys.idempotency("k")): "idempotency",
        ("XACK", table.stream()): "ack",
        ("XDEL", table.stream()): "delete",
    }
    return [names[write] for write in writes if write in names]


ORDERS = {
    "succeed": ["attempt", "hash", "result", "event", "idempotency", "ack", "delete"],
    "retry": ["attempt", "hash", "event", "schedule", "ack", "delete"],
    "fail": ["attempt", "hash", "dlq", "event", "idempotency", "ack", "delete"],
}


@pytest.mark.parametrize("outcome", ORDERS)
def test_an_outcome_is_written_in_order_and_acknowledged_last(outcome: str, table: Table) -> None:
    task_id = table.submit(idempotency_key="k")
    claim = table.claim()
    with monitored(table) as heard:
        table.retry(claim, LONG_MS) if outcome == "retry" else getattr(table, outcome)(claim)
        writes = heard()
    assert _named(table, task_id, writes) == ORDERS[outcome]


@pytest.mark.parametrize("end", ["cancel", "expire"])
def test_ending_a_waiting_task_acknowledges_last(end: str, table: Table) -> None:
    task_id = table.submit(idempotency_key="k", ttl=0 if end == "expire" else 600)
    table.redis("XGROUP", "CREATE", table.stream(), "workers", 0)
    with monitored(table) as heard:
        table.cancel(task_id) if end == "cancel" else table.expire()
        writes = heard()
    assert _named(table, task_id, writes) == ["hash", "event", "idempotency", "ack", "delete"]


def test_the_acknowledgement_comes_after_every_write_of_the_batch(table: Table) -> None:
    for _ in range(3):
        table.submit()
    from dtq_core.decide import Finish

    finishes = [Finish.succeeded(claim, b"1", LONG_MS) for claim in table.take().claims]
    with monitored(table) as heard:
        table.finish(*finishes)
        commands = [command for command, _ in heard()]
    writes = [command for command in commands if command in WRITES]
    assert writes[-2:] == ["XACK", "XDEL"]
    assert writes.count("XACK") == 1
