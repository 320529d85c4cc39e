"""Foreign keys: one item is refused, or one call, and nothing is half-written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_core.errors import CorruptDataError, RedisFullError
from dtq_core.scripts import Code
from dtq_core.states import Status
from scripts.table import LONG_MS, Table


def _make_foreign(table: Table, key: str) -> None:
    table.redis("DEL", key)
    command = ("LPUSH", key, "foreign") if ":wake:" not in key else ("SET", key, "foreign")
    table.redis(*command)


SHARED: dict[str, list[str]] = {
    "submit": ["delay_schedule", "expiry", "queues", "events"],
    "claim": ["events", "dlq", "expiry"],
    "reclaim": ["events", "dlq", "expiry"],
    "adopt": ["events", "dlq", "expiry"],
    "finish": ["events", "dlq", "expiry", "retry_schedule"],
    "release": ["events", "delay_schedule", "expiry"],
    "cancel": ["events", "delay_schedule", "retry_schedule", "expiry"],
    "promote": ["events", "dlq", "delay_schedule", "retry_schedule", "expiry"],
    "expire": ["events", "dlq", "delay_schedule", "retry_schedule", "expiry"],
}


@pytest.mark.parametrize(
    ("script", "name"), [(script, name) for script, names in SHARED.items() for name in names]
)
def test_a_foreign_shared_key_refuses_the_call_and_nothing_is_written(
    script: str, name: str, table: Table
) -> None:
    table.submit()
    claim = table.claim()
    delayed = table.submit(delay=600)
    table.submit()
    acts: dict[str, Callable[[], object]] = {
        "submit": lambda: table.submit(ttl=10),
        "claim": lambda: table.take("w2"),
        "reclaim": lambda: table.reclaim("w2", idle_ms=0),
        "adopt": lambda: table.adopt("w1"),
        "finish": lambda: table.succeed(claim),
        "release": lambda: table.release(claim),
        "cancel": lambda: table.cancel(delayed),
        "promote": lambda: table.promote("delay"),
        "expire": lambda: table.expire(),
    }
    _make_foreign(table, getattr(table.keys, name))
    before = table.snapshot()
    with pytest.raises(CorruptDataError):
        acts[script]()
    assert table.snapshot() == before


@pytest.mark.parametrize("part", ["stream", "stats", "wake"])
def test_a_foreign_key_of_one_queue_leaves_the_others_alone(part: str, table: Table) -> None:
    key = table.stream() if part == "stream" else getattr(table.keys, part)("q")
    _make_foreign(table, key)
    bad, good = table.submission(), table.submission(queue="good")
    answers = table.submit_all(bad, good)
    assert [answer.code for answer in answers] == [Code.CORRUPT, Code.OK]
    bands = [("q", "normal"), ("good", "normal")]
    taken = table.store.run(table.calls.claim("w1", 10, bands))
    assert [claim.task_id for claim in taken.claims] == [good.task_id]
    assert taken.corrupt == 1


@pytest.mark.parametrize("part", ["stats", "wake"])
def test_a_scheduled_task_of_a_blocked_queue_waits_and_stops_no_other(
    part: str, table: Table
) -> None:
    blocked, other = table.submit(delay=600), table.submit(delay=600, queue="good")
    table.redis("ZADD", table.keys.delay_schedule, 1, blocked, 2, other)
    _make_foreign(table, getattr(table.keys, part)("q"))
    assert table.promote("delay").moved == 1
    assert (table.status(blocked), table.status(other)) == (Status.SCHEDULED, Status.QUEUED)
    table.redis("DEL", getattr(table.keys, part)("q"))
    table.redis("ZADD", table.keys.delay_schedule, 1, blocked)
    table.promote("delay")
    assert table.status(blocked) is Status.QUEUED


def test_a_foreign_record_is_moved_aside_and_those_behind_it_go_on(table: Table) -> None:
    bad, good = table.submit(), table.submit()
    table.redis("DEL", table.keys.task(bad))
    table.redis("SET", table.keys.task(bad), "foreign")
    taken = table.take()
    assert [claim.task_id for claim in taken.claims] == [good]
    assert taken.corrupt == 1
    ((_, fields),) = table.redis("XRANGE", table.keys.dlq, "-", "+")
    assert bad.encode() in fields
    assert "TASK_CORRUPT" in table.events()


NUMBERS = ["attempt", "lease", "max_attempts", "retention_ms", "started_ms", "submitted_ms"]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["soon", "1.5", "nan", "inf", "1e400", "0x10", "-1", "9" * 30])
def test_a_number_that_is_none_makes_the_record_corrupt_not_the_batch(
    name: str, value: str, table: Table
) -> None:
    bad, good = table.submit(), table.submit()
    claims = table.take().claims
    table.redis("HSET", table.keys.task(bad), name, value)
    answers = [table.succeed(claim) for claim in claims]
    assert [answer.code for answer in answers] == [Code.CORRUPT, Code.OK]
    assert table.status(good) is Status.SUCCEEDED


def test_each_item_of_a_batch_is_answered_for_itself(table: Table) -> None:
    table.submit()
    fresh, stale = table.claim(), table.submit()
    table.redis("SET", table.keys.task("e" * 32), "foreign")
    ids = ["f" * 32, "e" * 32, fresh.task_id, stale]
    codes = [answer.code for answer in table.cancel(*ids)]
    assert codes == [Code.UNKNOWN, Code.CORRUPT, Code.REQUESTED, Code.OK]


def test_a_foreign_list_of_attempts_refuses_the_finish_and_ends_at_the_reclaim(
    table: Table,
) -> None:
    task_id = table.submit()
    claim = table.claim()
    _make_foreign(table, table.keys.attempts(task_id))
    table.redis("DEL", table.keys.attempts(task_id))
    table.redis("SET", table.keys.attempts(task_id), "foreign")
    before = table.snapshot()
    assert table.succeed(claim).code is Code.CORRUPT
    assert table.snapshot() == before
    table.reclaim("w2", idle_ms=0)
    assert table.status(task_id) is Status.DEAD_LETTERED


def test_a_foreign_idempotency_record_refuses_that_submission_alone(table: Table) -> None:
    table.redis("SET", table.keys.idempotency("k"), "foreign")
    answers = table.submit_all(table.submission(idempotency_key="k"), table.submission())
    assert [answer.code for answer in answers] == [Code.CORRUPT, Code.OK]


def test_a_full_server_refuses_whole_calls_and_nothing_is_half_written(table: Table) -> None:
    table.submit()
    claim = table.claim()
    table.redis("CONFIG", "SET", "maxmemory", 1)
    try:
        before = table.snapshot()
        for act in (table.submit, lambda: table.succeed(claim), lambda: table.retry(claim)):
            with pytest.raises(RedisFullError):
                act()
        assert table.snapshot() == before
    finally:
        table.redis("CONFIG", "SET", "maxmemory", 0)
    assert table.succeed(claim).code is Code.OK


def test_scripts_survive_an_emptied_script_cache(table: Table) -> None:
    task_id = table.submit()
    for act in (table.claim, lambda: table.cancel(task_id), table.expire):
        table.redis("SCRIPT", "FLUSH")
        act()
    assert table.record(task_id)["cancel_requested"]


def test_counters_agree_with_a_recount(table: Table) -> None:
    for number in range(40):
        options = [{}, {"delay": 600}, {"ttl": 0}, {"dead_letter": False}][number % 4]
        table.submit(**options)
    table.expire()
    for number, claim in enumerate(table.take(slots=18).claims):
        act = (table.succeed, table.fail, table.release, lambda c: table.retry(c, LONG_MS))
        act[number % 4](claim)
    table.reclaim(idle_ms=0, slots=3)
    keys = table.redis("KEYS", table.keys.task("*"))
    found = [table.redis("HGET", key, "status").decode().lower() for key in keys]
    counters = table.counters()
    for status in Status:
        assert counters[status.lower()] == found.count(status.lower()), status


@pytest.mark.parametrize("name", NUMBERS)
def test_a_record_with_a_broken_number_is_moved_aside_not_handed_out(
    name: str, table: Table
) -> None:
    bad, good = table.submit(), table.submit()
    table.redis("HSET", table.keys.task(bad), name, "1.5")
    taken = table.take()
    assert ([claim.task_id for claim in taken.claims], taken.corrupt) == ([good], 1)


def test_a_counter_that_is_no_number_stops_no_script(table: Table) -> None:
    table.redis("HSET", table.keys.stats("q"), "QUEUED", "many", "SUCCEEDED", "1.5")
    task_id = table.submit()
    assert table.succeed(table.claim()).code is Code.OK
    assert (table.status(task_id), table.length()) == (Status.SUCCEEDED, 0)
