"""Everything that may disagree, made by hand: it is found, and mended or told.

After the repair the ledger of the test is clean, and the task of it runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from dtq_client.operating import walking
from dtq_client.operating.verifying import Outcome, verify
from dtq_client.queries.audit import newest_acts
from dtq_core.keyspace import GROUP, OVERDUE, bands_of
from dtq_core.states import Status
from dtq_core.store import Store
from dtq_core.verify import MEANINGS, Kind
from scripts.states import MAKERS
from scripts.table import QUEUE, Table
from support.keys import check_keys

ID = "f" * 32


def looked(store: Store, *, repair: bool = False) -> Outcome:
    return verify(store, "os:ann@here", "because", repair=repair)


def found(outcome: Outcome) -> dict[str, tuple[int, int]]:
    return {kind.kind: (kind.found, kind.mended) for kind in outcome.kinds}


def delete_entry(table: Table, task_id: str) -> None:
    table.redis("XDEL", table.keys.stream(QUEUE, "normal"), table.record(task_id)["entry_id"])


def add_entry(table: Table, task_id: str, band: str = "normal") -> None:
    table.redis("XADD", table.keys.stream(QUEUE, band), "*", "id", task_id, "attempt", 1)


def queued(table: Table) -> str:
    return table.submit(max_attempts=5)


def running(table: Table, worker: str = "w1") -> str:
    task_id = queued(table)
    table.claim(worker)
    return task_id


def gone_while_queued(table: Table) -> str:
    task_id = queued(table)
    delete_entry(table, task_id)
    return task_id


def gone_while_running(table: Table) -> str:
    task_id = running(table)
    delete_entry(table, task_id)
    return task_id


def consumer_deleted(table: Table) -> str:
    task_id = running(table)
    table.redis("XGROUP", "DELCONSUMER", table.keys.stream(QUEUE, "normal"), GROUP, "w1")
    return task_id


def delivered_to_nobody(table: Table) -> str:
    task_id = queued(table)
    stream = table.keys.stream(QUEUE, "normal")
    table.redis("XGROUP", "CREATE", stream, GROUP, 0)
    table.redis("XREADGROUP", "GROUP", GROUP, "w1", "STREAMS", stream, ">")
    table.redis("XGROUP", "DELCONSUMER", stream, GROUP, "w1")
    return task_id


def stream_deleted(table: Table) -> str:
    task_id = queued(table)
    table.redis("DEL", table.keys.stream(QUEUE, "normal"))
    return task_id


def unscheduled(table: Table) -> str:
    task_id = table.submit(delay=600, max_attempts=5)
    table.redis("ZREM", table.keys.delay_schedule, task_id)
    return task_id


def retry_unscheduled(table: Table) -> str:
    task_id = queued(table)
    table.retry(table.claim(), 600_000)
    table.redis("ZREM", table.keys.retry_schedule, task_id)
    return task_id


def expiry_missing(table: Table) -> str:
    task_id = table.submit(ttl=600)
    table.redis("ZREM", table.keys.expiry, task_id)
    return task_id


def dead(table: Table) -> str:
    return MAKERS[Status.DEAD_LETTERED](table)[0]


def succeeded(table: Table) -> str:
    return MAKERS[Status.SUCCEEDED](table)[0]


def letter_missing(table: Table) -> str:
    task_id = dead(table)
    table.redis("DEL", table.keys.dlq)
    return task_id


def letter_stale(table: Table) -> str:
    task_id = queued(table)
    table.redis("XADD", table.keys.dlq, "*", "id", task_id, "queue", QUEUE)
    return task_id


def entry_stale(table: Table) -> str:
    task_id = succeeded(table)
    add_entry(table, task_id)
    return task_id


def second_entry(table: Table) -> str:
    task_id = queued(table)
    add_entry(table, task_id)
    return task_id


def entry_of_no_task(table: Table) -> str:
    task_id = queued(table)
    add_entry(table, ID, "low")
    return task_id


def member_stale(table: Table) -> str:
    task_id = queued(table)
    for schedule in (table.keys.delay_schedule, table.keys.retry_schedule, table.keys.expiry):
        table.redis("ZADD", schedule, 9e12, ID)
    return task_id


def key_stuck(table: Table) -> str:
    task_id = table.submit(idempotency_key="k")
    table.succeed(table.claim())
    key = table.keys.idempotency("k")
    table.redis("HSET", key, "state", "processing")
    table.redis("PERSIST", key)
    return task_id


def key_of_nobody(table: Table) -> str:
    table.redis("HSET", table.keys.idempotency("k"), "task", ID, "state", "processing")
    return queued(table)


def key_passing(table: Table) -> str:
    task_id = table.submit(idempotency_key="k")
    table.redis("PEXPIRE", table.keys.idempotency("k"), 60_000)
    return task_id


def kept(table: Table) -> str:
    task_id = succeeded(table)
    table.redis("PERSIST", table.keys.task(task_id))
    return task_id


def result_kept(table: Table) -> str:
    task_id = succeeded(table)
    table.redis("PERSIST", table.keys.result(task_id))
    return task_id


def passing(table: Table) -> str:
    task_id = queued(table)
    table.redis("PEXPIRE", table.keys.task(task_id), 60_000)
    return task_id


def orphan(table: Table) -> str:
    table.redis("RPUSH", table.keys.attempts(ID), "{}")
    return queued(table)


def queue_unknown(table: Table) -> str:
    task_id = queued(table)
    table.redis("DEL", table.keys.queues)
    return task_id


def counter_wrong(table: Table) -> str:
    task_id = queued(table)
    table.redis("HSET", table.keys.stats(QUEUE), "QUEUED", 7, "RUNNING", -1)
    return task_id


class Case(NamedTuple):
    make: Callable[[Table], str]
    kind: Kind
    count: int = 1
    lingers: bool = False
    """Whether what was mended is still there, and passes."""


MENDED = [
    Case(gone_while_queued, Kind.ENTRY_LOST),
    Case(gone_while_running, Kind.ENTRY_LOST),
    Case(consumer_deleted, Kind.ENTRY_LOST),
    Case(delivered_to_nobody, Kind.ENTRY_LOST),
    Case(stream_deleted, Kind.ENTRY_LOST),
    Case(unscheduled, Kind.UNSCHEDULED),
    Case(retry_unscheduled, Kind.UNSCHEDULED),
    Case(expiry_missing, Kind.EXPIRY_MISSING),
    Case(letter_missing, Kind.LETTER_MISSING),
    Case(letter_stale, Kind.LETTER_STALE),
    Case(entry_stale, Kind.ENTRY_STALE),
    Case(second_entry, Kind.ENTRY_STALE),
    Case(entry_of_no_task, Kind.ENTRY_STALE),
    Case(member_stale, Kind.MEMBER_STALE, 3),
    Case(key_stuck, Kind.IDEMPOTENCY_STUCK),
    Case(key_of_nobody, Kind.IDEMPOTENCY_STUCK, lingers=True),
    Case(key_passing, Kind.IDEMPOTENCY_PASSING),
    Case(kept, Kind.KEPT),
    Case(result_kept, Kind.KEPT),
    Case(passing, Kind.PASSING),
    Case(orphan, Kind.ORPHAN, lingers=True),
    Case(queue_unknown, Kind.QUEUE_UNKNOWN),
    Case(counter_wrong, Kind.COUNTER_WRONG, 2),
]


def run_on(table: Table, task_id: str) -> None:
    """Have a task that has not ended taken by a worker, whatever that takes."""
    for schedule in (table.keys.delay_schedule, table.keys.retry_schedule):
        if table.redis("ZSCORE", schedule, task_id):
            table.redis("ZADD", schedule, 1, task_id)
    table.promote("delay"), table.promote("retry")
    taken = table.reclaim("w2").claims or table.take("w2").claims or table.take("w2").claims
    assert [claim.task_id for claim in taken] == [task_id]
    table.succeed(taken[0])
    assert table.status(task_id) is Status.SUCCEEDED


@pytest.mark.parametrize("case", MENDED, ids=lambda case: case.make.__name__)
def test_what_disagrees_is_found_and_mended(case: Case, table: Table) -> None:
    task_id = case.make(table)
    before = table.snapshot()
    outcome = looked(table.store)
    assert found(outcome) == {case.kind: (case.count, 0)}
    assert outcome.left == case.count
    assert table.snapshot() == before, "looking changes nothing"

    mended = looked(table.store, repair=True)
    assert found(mended) == {case.kind: (case.count, case.count)}
    assert (mended.left, looked(table.store).kinds) == (0, [])
    assert looked(table.store, repair=True).kinds == []
    if not case.lingers:
        check_keys(table.store)
    (act,) = newest_acts(table.store, 5)
    assert (act.action, act.changed, act.who) == ("verify.repair", case.count, "os:ann@here")
    if table.status(task_id) not in {Status.SUCCEEDED, Status.DEAD_LETTERED}:
        run_on(table, task_id)
        assert looked(table.store).kinds == []


def test_a_running_task_that_got_its_entry_back_has_its_crash_counted(table: Table) -> None:
    task_id = gone_while_running(table)
    looked(table.store, repair=True)
    (claim,) = table.reclaim("w2").claims
    assert (claim.task_id, claim.attempt, claim.crashes) == (task_id, 2, 1)


def test_a_live_worker_whose_entry_is_gone_ends_its_task_all_the_same(table: Table) -> None:
    task_id = queued(table)
    claim = table.claim()
    table.beat("w1")
    delete_entry(table, task_id)
    assert found(looked(table.store, repair=True)) == {Kind.ENTRY_LOST_RUNNING: (1, 0)}
    table.succeed(claim)
    assert table.status(task_id) is Status.SUCCEEDED
    assert looked(table.store).kinds == []


def test_a_live_worker_gets_an_entry_back_that_it_holds(table: Table) -> None:
    claim_id = queued(table)
    claim = table.claim()
    table.beat("w1")
    stream = table.keys.stream(QUEUE, "normal")
    table.redis("XGROUP", "DELCONSUMER", stream, GROUP, "w1")
    assert found(looked(table.store, repair=True)) == {Kind.ENTRY_LOST: (1, 1)}
    assert table.reclaim("w2").claims == [], "it is not overdue: its worker renews it"
    assert table.adopt("w1", claim).claims == [], "and knows it"
    table.succeed(claim)
    assert table.status(claim_id) is Status.SUCCEEDED


def break_record(table: Table) -> None:
    table.redis("HSET", table.keys.task(queued(table)), "attempt", "nan")


def block_queue(table: Table) -> None:
    table.submit(queue="blocked")
    table.redis("DEL", table.keys.wake("blocked"))
    table.redis("SET", table.keys.wake("blocked"), "foreign")


def lose_record_of_letter(table: Table) -> None:
    task_id = dead(table)
    table.redis("DEL", table.keys.task(task_id), table.keys.attempts(task_id))


def put_foreign_key(table: Table) -> None:
    table.redis("SET", f"{table.keys.prefix}:mine", "x")


def change_audit(table: Table) -> None:
    table.submit()
    table.pause()
    table.redis("DEL", table.keys.audit)


def make_events_foreign(table: Table) -> None:
    queued(table)
    table.redis("DEL", table.keys.events)
    table.redis("SET", table.keys.events, "foreign")


TOLD: dict[str, tuple[Callable[[Table], Any], set[Kind]]] = {
    "a broken record": (break_record, {Kind.RECORD_CORRUPT, Kind.COUNTER_WRONG}),
    "a blocked queue": (block_queue, {Kind.QUEUE_BLOCKED}),
    "a dead letter without its record": (
        lose_record_of_letter,
        {Kind.LETTER_ORPHAN},
    ),
    "a foreign key": (put_foreign_key, {Kind.FOREIGN}),
    "a changed audit log": (change_audit, {Kind.AUDIT_CHANGED}),
    "a shared key that is not ours": (make_events_foreign, {Kind.FOREIGN}),
}


@pytest.mark.parametrize("what", TOLD)
def test_what_cannot_be_mended_safely_is_told(what: str, table: Table) -> None:
    make, kinds = TOLD[what]
    make(table)
    outcome = looked(table.store)
    assert set(found(outcome)) >= kinds
    mended = looked(table.store, repair=True)
    assert mended.left > 0
    assert {kind.kind for kind in mended.kinds if kind.found > kind.mended} >= {
        kind for kind in kinds if not MEANINGS[kind].mended
    }


def test_consumers_of_workers_that_are_gone_are_cleared_away(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = running(table, "gone")
    assert looked(table.store).kinds == [], "a consumer that is not silent may just begin"
    monkeypatch.setattr(walking, "_GONE_AFTER_MS", -1)
    assert found(looked(table.store, repair=True)) == {Kind.WORKER_GONE: (1, 1)}
    names = table.redis("XINFO", "CONSUMERS", table.keys.stream(QUEUE, "normal"), GROUP)
    assert [row[1] for row in names] == [OVERDUE.encode()]
    table.bands = bands_of([QUEUE])
    assert [claim.task_id for claim in table.reclaim("w2").claims] == [task_id]


@pytest.mark.parametrize("status", MAKERS)
def test_a_task_in_any_status_agrees_with_itself(status: Status, table: Table) -> None:
    MAKERS[status](table)
    assert looked(table.store, repair=True).kinds == []


def test_every_kind_is_made_here() -> None:
    told = set.union(*(kinds for _, kinds in TOLD.values()))
    others = {Kind.ENTRY_LOST_RUNNING, Kind.WORKER_GONE}
    assert {case.kind for case in MENDED} | told | others == set(Kind) == set(MEANINGS)


def test_counters_that_moved_and_came_back_are_not_compared(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = running(table)
    look = walking.Walk._all_keys

    def moved(walk: walking.Walk) -> Any:
        """RETRYING while it is looked at, RUNNING before and after."""
        table.retry(table.adopt("w1").claims[0])
        yield from look(walk)
        table.promote("retry")
        table.claim()

    monkeypatch.setattr(walking.Walk, "_all_keys", moved)
    assert looked(table.store, repair=True).kinds == []
    assert table.status(task_id) is Status.RUNNING
    assert table.counters()["RUNNING"] == 1


def test_many_stale_members_are_all_removed(table: Table) -> None:
    members = [value for n in range(1200) for value in (9e12, f"{n:032x}")]
    table.redis("ZADD", table.keys.delay_schedule, *members)
    assert found(looked(table.store, repair=True)) == {Kind.MEMBER_STALE: (1200, 1200)}
    assert looked(table.store).kinds == []


@pytest.mark.parametrize("name", ["stream:a:b:normal", "stream:foo", "stats:a b", "task:x"])
def test_a_key_with_a_name_that_is_none_is_foreign(name: str, table: Table) -> None:
    table.redis("XADD", f"{table.keys.prefix}:{name}", "*", "id", ID)
    assert found(looked(table.store, repair=True)) == {Kind.FOREIGN: (1, 0)}
    assert table.redis("EXISTS", table.keys.queues) == 0


def test_counters_of_another_type_hide_nothing_else(table: Table) -> None:
    unscheduled(table)
    table.redis("SET", table.keys.stats("other"), "foreign")
    table.redis("HSET", table.keys.queues, "other", "{}")
    assert Kind.UNSCHEDULED in found(looked(table.store))
