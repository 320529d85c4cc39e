"""The audit log: written by the step that does it, and chained, so that a change of it shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_client.queries.audit import check_log, newest_acts
from dtq_core import reads
from dtq_core.audit import Operation, decode_entry, operation
from scripts.table import Table

ENTRIES = 5


@pytest.fixture
def log(table: Table) -> Table:
    for number in range(ENTRIES):
        table.pause(paused=number % 2 == 0)
    return table


def problem(table: Table) -> str | None:
    return check_log(table.store)[0].problem


def test_an_entry_says_who_did_what_when_why_and_how_much(table: Table) -> None:
    before = table.store.read(reads.now_ms())
    table.pause("a", "b", "a")
    (entry,) = map(decode_entry, table.store.read(reads.audit_before(table.keys, "+")))
    assert (entry.number, entry.action, entry.who) == (1, "queue.pause", "os:ann@here")
    assert (entry.reason, entry.scope) == ("because", "queue=q")
    assert (entry.matched, entry.changed, entry.ids) == (3, 2, [])
    assert abs(int(table.redis("XRANGE", table.keys.audit, "-", "+")[0][0][:13]) - before) < 1000


def test_the_calls_of_one_operation_are_shown_as_one(table: Table) -> None:
    act = operation("queue.pause", "os:bob@here", "", "queue=a")
    for queue in ("a", "b", "a"):
        table.run(table.calls.pause(act, [queue], paused=True))
    table.pause("c")
    acts = {found.id: found for found in newest_acts(table.store, 10)}
    first = acts.pop(act.id)
    assert (first.calls, first.matched, first.changed) == (3, 3, 2)
    assert [found.calls for found in acts.values()] == [1]
    assert len(newest_acts(table.store, 1)) == 1


def test_a_cancel_is_logged_where_an_operator_does_it_and_it_changes_something(
    table: Table,
) -> None:
    waiting, by_client = table.submit(), table.submit()
    running = table.claim().task_id
    (waiting,) = {waiting, by_client} - {running}
    act = operation("task.cancel", "os:ann@here", "", "two tasks")
    for _ in range(2):  # as where the first reply is lost
        table.run(table.calls.cancel([waiting, running, "e" * 32], "because", act))
    table.cancel(table.submit())
    (entry,) = map(decode_entry, table.store.read(reads.audit_before(table.keys, "+")))
    assert (entry.action, entry.matched, entry.changed) == ("task.cancel", 2, 2)
    assert problem(table) is None


def test_a_log_as_it_was_written_is_whole(log: Table) -> None:
    verdict = check_log(log.store)[0]
    assert (verdict.problem, verdict.entries, verdict.trimmed) == (None, ENTRIES, 0)
    assert verdict.hash == log.redis("HGET", log.keys.audit_head, "hash").decode()


def test_an_empty_log_is_whole(table: Table) -> None:
    assert problem(table) is None


def entries(table: Table) -> list[list[object]]:
    found: list[list[object]] = table.redis("XRANGE", table.keys.audit, "-", "+")
    return found


def rewrite(table: Table, change: Callable[[list[list[object]]], None]) -> None:
    """Write the stream anew, as somebody would who wants to hide something."""
    found = entries(table)
    change(found)
    table.redis("DEL", table.keys.audit)
    for cursor, fields in found:
        table.redis("XADD", table.keys.audit, cursor, *fields)


def edit(number: int, name: bytes, value: bytes) -> Callable[[Table], None]:
    def change(found: list[list[object]]) -> None:
        fields = found[number - 1][1]
        assert isinstance(fields, list)
        fields[fields.index(name) + 1] = value

    return lambda table: rewrite(table, change)


def cut(*numbers: int) -> Callable[[Table], None]:
    def act(table: Table) -> None:
        found = entries(table)
        table.redis("XDEL", table.keys.audit, *(found[number - 1][0] for number in numbers))

    return act


TAMPERED: dict[str, Callable[[Table], None]] = {
    "another reason": edit(2, b"reason", b"none"),
    "another person": edit(3, b"who", b"os:bob@here"),
    "other figures": edit(ENTRIES, b"changed", b"0"),
    "text moved from one field to the next": lambda table: (
        edit(2, b"who", b"os:ann@herebecause")(table),
        edit(2, b"reason", b"")(table),
    ),
    "the first cut out": cut(1),
    "one in the middle cut out": cut(3),
    "the last cut off": cut(ENTRIES),
    "all deleted": lambda table: table.redis("DEL", table.keys.audit),
    "numbers closed up": lambda table: (cut(3)(table), edit(3, b"number", b"3")(table)),
    "one added by hand": lambda table: table.redis(
        *("XADD", table.keys.audit, "*", "number", ENTRIES + 1, "who", "os:eve@here")
    ),
    "a hash of the attacker's": edit(2, b"hash", b"0" * 40),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_changed_log_shows(how: str, log: Table) -> None:
    TAMPERED[how](log)
    assert problem(log) is not None


def test_a_log_that_is_capped_begins_later_and_is_whole(table: Table) -> None:
    calls = type(table.calls)(table.keys.prefix, 1000, audit_maxlen=100)
    for number in range(400):
        act = Operation(f"{number:032x}", "test", "os:ann@here", "", "")
        table.run(calls.pause(act, ["a"], paused=number % 2 == 0))
    verdict = check_log(table.store)[0]
    assert verdict.problem is None
    assert verdict.trimmed > 0
    assert verdict.entries + verdict.trimmed == 400
    first = entries(table)[0][0]
    table.redis("XDEL", table.keys.audit, first)
    assert problem(table) is not None


def test_a_log_without_its_head_shows(log: Table) -> None:
    cut(ENTRIES)(log)
    log.redis("DEL", log.keys.audit_head)
    assert problem(log) == "the head of the log is gone"


def test_a_log_that_is_trimmed_while_it_is_checked_is_whole(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = type(table.calls)(table.keys.prefix, 1000, audit_maxlen=100)

    def act(count: int) -> None:
        for number in range(count):
            operation = Operation(f"{number:032x}", "test", "os:ann@here", "", "")
            table.run(calls.pause(operation, ["a"], paused=number % 2 == 0))

    act(300)
    read, trims = reads.audit_after, iter([250])

    def trimmed(*args: object) -> object:
        act(next(trims, 0))
        return read(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "audit_after", trimmed)
    assert problem(table) is None
