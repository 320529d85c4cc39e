"""The scripts beside the transitions: heartbeats, the scheduler's lease, waiters."""

from __future__ import annotations

import pytest

from dtq_core.scripts import Code
from scripts.monitor import monitored
from scripts.table import LONG_MS, Table, until
from support.clock import BEGIN_MS, Clock

pytestmark = pytest.mark.ledger_checked


def test_one_scheduler_leads_and_only_it_renews(table: Table) -> None:
    first = table.lead("a", LONG_MS)
    assert first.leads
    second = table.lead("b", LONG_MS)
    assert (second.leads, second.term) == (False, first.term)
    assert second.left_ms > 0
    assert table.lead("a", LONG_MS).term == first.term


def test_only_the_leader_gives_the_lease_up(table: Table) -> None:
    table.lead("a", LONG_MS)
    table.lead("b", 0)
    assert not table.lead("b", LONG_MS).leads
    table.lead("a", 0)
    assert table.lead("b", LONG_MS).leads


def test_a_lease_always_has_a_ttl_and_a_later_leader_a_higher_term(table: Table) -> None:
    first = table.lead("a", 5)
    assert 0 < table.ttl(table.keys.leader) <= 5
    until("the lease has run out", lambda: table.ttl(table.keys.leader) == -2)
    assert table.lead("b", LONG_MS).term > first.term


def test_a_foreign_or_deleted_lease_costs_one_election(table: Table) -> None:
    table.lead("a", LONG_MS)
    table.redis("SET", table.keys.leader, "something else")
    assert table.lead("a", LONG_MS).leads
    table.redis("DEL", table.keys.leader)
    assert table.lead("b", LONG_MS).leads
    assert not table.lead("a", LONG_MS).leads


def test_a_worker_is_known_for_as_long_as_it_beats(table: Table) -> None:
    beat = table.run(table.calls.beat("w1", LONG_MS, 2000, {"host": "h", "pid": 7}))
    assert beat == (0, 2000)
    assert table.redis("HGET", table.keys.worker("w1"), "pid") == b"7"
    assert 0 < table.ttl(table.keys.worker("w1")) <= LONG_MS


def test_a_heartbeat_tells_the_longest_visibility_of_all_live_workers(table: Table) -> None:
    table.beat("w1", visibility_ms=60_000)
    assert table.beat("w2", visibility_ms=1000).visibility_ms == 60_000


def test_an_abandoned_worker_is_forgotten(table: Table) -> None:
    table.beat("w1")
    table.abandon("w1")
    assert table.redis("ZCARD", table.keys.workers) == 0
    assert table.redis("EXISTS", table.keys.worker("w1")) == 0


def test_a_lease_without_an_end_is_none(table: Table) -> None:
    table.lead("a")
    table.redis("PERSIST", table.keys.leader)
    assert table.lead("b").leads
    assert table.ttl(table.keys.leader) > 0


def test_the_leader_keeps_its_term_for_as_long_as_it_renews(timed: Table, clock: Clock) -> None:
    terms = []
    for scheduler in ("a", "a", "a"):
        clock.turn(1000)
        terms.append(timed.lead(scheduler).term)
    timed.lead("a", 0)
    assert terms == [BEGIN_MS + 1000] * 3
    assert timed.lead("b").term == BEGIN_MS + 3000


def test_a_watched_task_announces_its_end_and_others_do_not(table: Table) -> None:
    watched, _ = table.submit(), table.submit()
    unknown = "f" * 28 + "0000"
    assert [answer.code for answer in table.watch(watched, unknown)] == [Code.OK, Code.UNKNOWN]
    claims = table.take().claims
    with monitored(table) as heard:
        for claim in claims:
            table.succeed(claim)
        announced = [channel for command, channel in heard() if command == "PUBLISH"]
    assert announced == [table.keys.done(watched)]
    assert table.watch(watched)[0].code is Code.ENDED


def test_a_task_is_marked_once_however_many_wait_for_it(table: Table) -> None:
    task_id = table.submit()
    with monitored(table) as heard:
        answers = table.watch(task_id, task_id) + table.watch(task_id)
        writes = [command for command, _ in heard() if command == "HSET"]
    assert [answer.code for answer in answers] == [Code.OK] * 3
    assert len(writes) == 1
