"""The scripts beside the transitions: heartbeats, the scheduler's lease, waiters."""

from __future__ import annotations

from dtq_core.scripts import Code
from scripts.table import LONG_MS, Table, until


def test_one_scheduler_leads_and_only_it_renews(table: Table) -> None:
    lead = table.calls.lead
    first = table.store.run(lead("a", LONG_MS))
    assert first.leads
    second = table.store.run(lead("b", LONG_MS))
    assert (second.leads, second.term) == (False, first.term)
    assert second.left_ms > 0
    assert table.store.run(lead("a", LONG_MS)).term == first.term


def test_only_the_leader_gives_the_lease_up(table: Table) -> None:
    lead = table.calls.lead
    table.store.run(lead("a", LONG_MS))
    table.store.run(lead("b", 0))
    assert not table.store.run(lead("b", LONG_MS)).leads
    table.store.run(lead("a", 0))
    assert table.store.run(lead("b", LONG_MS)).leads


def test_a_lease_always_has_a_ttl_and_a_later_leader_a_higher_term(table: Table) -> None:
    first = table.store.run(table.calls.lead("a", 5))
    assert 0 < table.ttl(table.keys.leader) <= 5
    until("the lease has run out", lambda: table.ttl(table.keys.leader) == -2)
    assert table.store.run(table.calls.lead("b", LONG_MS)).term > first.term


def test_a_foreign_or_deleted_lease_costs_one_election(table: Table) -> None:
    table.store.run(table.calls.lead("a", LONG_MS))
    table.redis("SET", table.keys.leader, "something else")
    assert table.store.run(table.calls.lead("a", LONG_MS)).leads
    table.redis("DEL", table.keys.leader)
    assert table.store.run(table.calls.lead("b", LONG_MS)).leads
    assert not table.store.run(table.calls.lead("a", LONG_MS)).leads


def test_a_worker_is_known_for_as_long_as_it_beats(table: Table) -> None:
    beat = table.store.run(table.calls.beat("w1", LONG_MS, 2000, {"host": "h", "pid": 7}))
    assert beat == (0, 2000)
    assert table.redis("HGET", table.keys.worker("w1"), "pid") == b"7"
    assert 0 < table.ttl(table.keys.worker("w1")) <= LONG_MS


def test_a_heartbeat_tells_the_longest_visibility_of_all_live_workers(table: Table) -> None:
    table.store.run(table.calls.beat("w1", LONG_MS, 60_000, {"host": "h"}))
    assert table.store.run(table.calls.beat("w2", LONG_MS, 1000, {"host": "h"})).visibility_ms == (
        60_000
    )


def test_an_abandoned_worker_is_forgotten(table: Table) -> None:
    table.store.run(table.calls.beat("w1", LONG_MS, 1000, {"host": "h"}))
    table.abandon("w1")
    assert table.redis("ZCARD", table.keys.workers) == 0
    assert table.redis("EXISTS", table.keys.worker("w1")) == 0


def test_a_watched_task_announces_its_end_and_others_do_not(table: Table) -> None:
    watched, plain = table.submit(), table.submit()
    unknown = "f" * 28 + "0000"
    answers = table.store.run(table.calls.watch([watched, unknown]))
    assert [answer.code for answer in answers] == [Code.OK, Code.UNKNOWN]
    for claim in table.take().claims:
        table.succeed(claim)
    assert table.store.run(table.calls.watch([watched]))[0].code is Code.ENDED
    assert "watched" in table.record(watched)
    assert "watched" not in table.record(plain)
