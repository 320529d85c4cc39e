"""Foreign keys: one item is refused, or one call, and nothing is half-written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_core.decide import Finish, Release
from dtq_core.errors import CorruptDataError
from dtq_core.record import DEFAULT_RETENTION_MS, Claim
from dtq_core.scripts import Code
from dtq_core.states import Status
from scripts.states import MAKERS
from scripts.table import LONG_MS, Table


def _make_foreign(table: Table, key: str) -> None:
    table.redis("DEL", key)
    command = ("LPUSH", key, "foreign") if ":wake:" not in key else ("SET", key, "foreign")
    table.redis(*command)


CRON_KEYS = {"cron", "cron_schedule", "cron_state"}
WAITING_KEYS = {"delay_schedule", "retry_schedule"}
REFUSED_FOR: dict[str, set[str]] = {
    "submit": {"events", "expiry", "delay_schedule", "queues"},
    "claim": {"events", "expiry", "dlq"},
    "reclaim": {"events", "expiry", "dlq"},
    "adopt": {"events", "expiry", "dlq"},
    "finish": {"events", "expiry", "dlq", "retry_schedule"},
    "release": {"events", "expiry", "dlq", "delay_schedule"},
    "cancel": {"events", "expiry", "dlq", "audit", "audit_head", *WAITING_KEYS},
    "promote": {"events", "expiry", "dlq", *WAITING_KEYS},
    "expire": {"events", "expiry", "dlq", *WAITING_KEYS},
    "abandon": {"workers"},
    "beat": {"workers"},
    "lead": {"leader"},
    "cron_put": {*CRON_KEYS, "audit", "audit_head"},
    "cron_drop": {*CRON_KEYS, "audit", "audit_head"},
    "cron_pause": {*CRON_KEYS, "audit", "audit_head"},
    "fire": {"events", "expiry", "delay_schedule", "queues", *CRON_KEYS, "audit", "audit_head"},
    "key_put": {"api_keys", "audit", "audit_head"},
    "requeue": {"events", "expiry", "dlq", "audit", "audit_head"},
    "purge": {"events", "expiry", "dlq", "audit", "audit_head", *WAITING_KEYS},
    "discard": {"events", "dlq", "audit", "audit_head"},
    "verify": {"events", "expiry", "dlq", "queues", "audit", "audit_head", *WAITING_KEYS},
    "recount": {"audit", "audit_head"},
    "pause": {"events", "queues", "audit", "audit_head"},
    "renew": set(),
    "probe": set(),
    "watch": set(),
    "op_begin": set(),
    "op_end": set(),
}
"""For which foreign keys a script refuses the whole call. It never looks at the others."""

SHARED = sorted(set.union(*REFUSED_FOR.values()))


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("script", REFUSED_FOR)
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
        "abandon": lambda: table.abandon("w1"),
        "beat": lambda: table.beat("w1"),
        "lead": lambda: table.lead("s1"),
        "pause": lambda: table.pause(),
        "cron_put": lambda: table.cron_put(operation=table.operation()),
        "cron_drop": lambda: table.run(table.calls.cron_drop(table.operation(), "nightly")),
        "cron_pause": lambda: table.run(table.calls.cron_pause(table.operation(), "nightly", None)),
        "fire": lambda: table.fire(ttl=10),
        "key_put": lambda: table.key_put(),
        "requeue": lambda: table.requeue(delayed),
        "purge": lambda: table.purge(delayed),
        "discard": lambda: table.discard(delayed),
        "verify": lambda: table.verify(delayed),
        "recount": lambda: table.recount(),
        "renew": lambda: table.renew(claim, progress=b"1"),
        "probe": lambda: table.run(table.calls.probe()),
        "watch": lambda: table.watch(delayed),
        "op_begin": lambda: table.op_begin(claim),
        "op_end": lambda: table.op_end(claim),
    }
    key = getattr(table.keys, name)
    _make_foreign(table, key)
    before = table.snapshot()
    if name not in REFUSED_FOR[script]:
        acts[script]()
        assert table.redis("LRANGE", key, 0, -1) == [b"foreign"]
        return
    with pytest.raises(CorruptDataError, match="CORRUPT"):
        acts[script]()
    assert table.snapshot() == before


def test_a_foreign_heartbeat_refuses_the_beat_and_hides_no_worker(table: Table) -> None:
    _make_foreign(table, table.keys.worker("w1"))
    table.redis("ZADD", table.keys.workers, 1, "w1")
    before = table.snapshot()
    with pytest.raises(CorruptDataError, match="is a list, not a hash"):
        table.beat("w1")
    assert table.snapshot() == before
    assert table.beat("w2", visibility_ms=7).visibility_ms == 7


BROKEN: dict[str, tuple[object, ...]] = {
    "no status of ours": ("HSET", "status", "ODD"),
    "no status": ("HDEL", "status"),
    "a queue that is no name": ("HSET", "queue", b"\xff q"),
    "no queue": ("HDEL", "queue"),
    "no such band": ("HSET", "band", "urgent"),
    "no attempt": ("HDEL", "attempt"),
    "an entry that is none": ("HSET", "entry_id", "soon"),
    "an entry beyond all numbers": ("HSET", "entry_id", "9" * 20 + "-0"),
    "no entry": ("HDEL", "entry_id"),
    "no worker": ("HDEL", "worker"),
    "a worker that is no name": ("HSET", "worker", '"'),
    "no lease": ("HDEL", "lease"),
    "another type": (),
}
"""What may be wrong with the record of a running task."""


def _break(table: Table, task_id: str, how: str) -> None:
    key = table.keys.task(task_id)
    if BROKEN[how]:
        command, *rest = BROKEN[how]
        table.redis(command, key, *rest)
    else:
        _make_foreign(table, key)


def _two_running(table: Table) -> tuple[Claim, Claim]:
    table.submit_all(table.submission(), table.submission())
    bad, good = table.take("w1").claims
    return bad, good


ON_TWO: dict[str, tuple[Code, Callable[[Table, Claim, Claim], list[Code]]]] = {
    "submit": (
        Code.AGAIN,
        lambda table, *two: [
            answer.code
            for answer in table.submit_all(*(table.submission(task_id=c.task_id) for c in two))
        ],
    ),
    "finish": (
        Code.OK,
        lambda table, *two: [
            answer.code
            for answer in table.finish(*(Finish.succeeded(c, b"1", LONG_MS) for c in two))
        ],
    ),
    "release": (
        Code.OK,
        lambda table, *two: [
            answer.code
            for answer in table.run(table.calls.release([Release.now(c, "now") for c in two]))
        ],
    ),
    "renew": (
        Code.OK,
        lambda table, *two: table.run(
            table.calls.renew("w1", [(c.task_id, c.lease, b"1") for c in two])
        ),
    ),
    "cancel": (
        Code.REQUESTED,
        lambda table, *two: [answer.code for answer in table.cancel(*(c.task_id for c in two))],
    ),
    "watch": (
        Code.OK,
        lambda table, *two: [answer.code for answer in table.watch(*(c.task_id for c in two))],
    ),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("script", ON_TWO)
def test_a_broken_record_is_refused_untouched_and_its_neighbour_goes_on(
    script: str, how: str, table: Table
) -> None:
    bad, good = _two_running(table)
    _break(table, bad.task_id, how)
    before = table.snapshot()[f"task:{bad.task_id}"]
    right, act = ON_TWO[script]
    assert act(table, bad, good) == [Code.CORRUPT, right]
    assert table.snapshot()[f"task:{bad.task_id}"] == before


@pytest.mark.parametrize("how", ["an entry that is none", "no entry"])
def test_a_waiting_record_without_its_entry_is_refused_or_moved_aside(
    how: str, table: Table
) -> None:
    two = (table.submission() for _ in range(2))
    bad, good = (answer.task_id for answer in table.submit_all(*two))
    _break(table, bad, how)
    before = table.snapshot()
    assert table.cancel(bad)[0].code is Code.CORRUPT
    assert table.expire().moved == 0
    assert table.snapshot() == before
    taken = table.take()
    assert ([claim.task_id for claim in taken.claims], taken.corrupt) == ([good], 1)


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("script", ["claim", "reclaim", "adopt"])
def test_a_broken_record_is_moved_aside_and_its_neighbour_is_taken(
    script: str, how: str, table: Table
) -> None:
    bad, good = _two_running(table)
    _break(table, bad.task_id, how)
    before = table.snapshot()[f"task:{bad.task_id}"]
    if script == "claim":  # their group is gone: both come as new, the good one stays with w1
        table.redis("XGROUP", "DESTROY", table.stream(), "workers")
    acts = {"claim": table.take, "reclaim": lambda: table.reclaim(idle_ms=0), "adopt": table.adopt}
    taken = acts[script]()
    assert (taken.corrupt, taken.absorbed) == (1, 0)
    assert [claim.task_id for claim in taken.claims] == (
        [] if script == "claim" else [good.task_id]
    )
    assert (table.length(), table.pending()) == (1, 1)
    assert table.snapshot()[f"task:{bad.task_id}"] == before
    ((_, fields),) = table.redis("XRANGE", table.keys.dlq, "-", "+")
    assert bad.task_id.encode() in fields
    assert table.events().count("TASK_CORRUPT") == 1


@pytest.mark.parametrize("part", ["stream", "stats", "wake"])
@pytest.mark.parametrize("script", ["submit", "finish", "release", "cancel"])
def test_a_foreign_key_of_the_queue_refuses_what_would_write_to_it(
    script: str, part: str, table: Table
) -> None:
    two = _two_running(table)
    key = table.stream() if part == "stream" else getattr(table.keys, part)("q")
    _make_foreign(table, key)
    before = table.snapshot()
    assert ON_TWO[script][1](table, *two) == [Code.CORRUPT, Code.CORRUPT]
    assert table.snapshot() == before


@pytest.mark.parametrize("part", ["stream", "stats", "wake"])
@pytest.mark.parametrize("script", ["reclaim", "adopt", "abandon"])
def test_a_foreign_key_of_one_queue_hides_no_work_of_another(
    script: str, part: str, table: Table
) -> None:
    blocked, other = table.submission(), table.submission(queue="good")
    bands = [("q", "normal"), ("good", "normal")]
    table.submit_all(blocked, other)
    assert len(table.run(table.calls.claim("w1", 10, bands)).claims) == 2
    key = table.stream() if part == "stream" else getattr(table.keys, part)("q")
    _make_foreign(table, key)
    if script == "abandon":
        assert table.run(table.calls.abandon("w1", bands)) == (1, 0)
        return
    calls = {
        "reclaim": table.calls.reclaim("w2", 10, 0, bands, [b"0-0", b"0-0"]),
        "adopt": table.calls.adopt("w1", [], bands),
    }
    taken = table.run(calls[script])
    assert [claim.task_id for claim in taken.claims] == [other.task_id]
    assert taken.corrupt == 1


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


NUMBERS = ["attempt", "lease", "max_attempts", "retention_ms", "started_ms", "queued_ms"]


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


def test_a_foreign_list_of_attempts_refuses_a_failure_and_ends_at_the_reclaim(
    table: Table,
) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.redis("SET", table.keys.attempts(task_id), "foreign")
    before = table.snapshot()
    assert table.fail(claim).code is Code.CORRUPT
    assert table.retry(claim, LONG_MS).code is Code.CORRUPT
    assert table.snapshot() == before
    table.reclaim("w2", idle_ms=0)
    assert table.status(task_id) is Status.DEAD_LETTERED


def test_a_foreign_list_of_attempts_is_left_alone_by_a_success(table: Table) -> None:
    task_id = table.submit()
    claim = table.claim()
    table.redis("SET", table.keys.attempts(task_id), "foreign")
    assert table.succeed(claim).code is Code.OK
    assert table.status(task_id) is Status.SUCCEEDED
    assert table.redis("GET", table.keys.attempts(task_id)) == b"foreign"


def test_a_foreign_idempotency_record_refuses_that_submission_alone(table: Table) -> None:
    table.redis("SET", table.keys.idempotency("k"), "foreign")
    answers = table.submit_all(table.submission(idempotency_key="k"), table.submission())
    assert [answer.code for answer in answers] == [Code.CORRUPT, Code.OK]


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
    found = [table.redis("HGET", key, "status").decode() for key in keys]
    counters = table.counters()
    for status in Status:
        assert counters[status] == found.count(status), status


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


def test_heartbeats_and_cancels_survive_a_count_of_cancels_that_is_none(table: Table) -> None:
    table.beat("w1")
    first, second = table.submit(), table.submit()
    table.take("w1")
    table.redis("HSET", table.keys.worker("w1"), "cancels", "many")
    assert table.cancel(first)[0].code is Code.REQUESTED
    assert table.beat("w1").cancels == 0
    table.cancel(second)
    assert table.beat("w1").cancels == 1


@pytest.mark.parametrize("broken", [("ttl_ms", "soon"), ("ttl_ms", "1.5"), ("ttl_ms", "9" * 30)])
def test_an_idempotency_record_with_a_broken_ttl_stops_no_outcome(
    broken: tuple[str, str], table: Table
) -> None:
    task_id = table.submit(idempotency_key="k")
    key = table.keys.idempotency("k")
    table.redis("HSET", key, *broken)
    assert table.succeed(table.claim()).code is Code.OK
    assert (table.status(task_id), table.length()) == (Status.SUCCEEDED, 0)
    assert 0 < table.ttl(key) <= DEFAULT_RETENTION_MS


def test_an_idempotency_record_without_a_state_still_leads_to_its_task(table: Table) -> None:
    task_id = table.submit(idempotency_key="k")
    table.redis("HDEL", table.keys.idempotency("k"), "state")
    answer = table.submit_all(table.submission(idempotency_key="k"))[0]
    assert answer == (Code.DUPLICATE, task_id, "")


@pytest.mark.parametrize(
    "replace", [("SET", "foreign"), ("HSET", "task", "f" * 32, "state", "processing")]
)
def test_an_idempotency_record_of_another_is_left_alone(
    replace: tuple[str, ...], table: Table
) -> None:
    task_id = table.submit(idempotency_key="k")
    claim = table.claim()
    key = table.keys.idempotency("k")
    command, *rest = replace
    table.redis("DEL", key)
    table.redis(command, key, *rest)
    before = table.snapshot()["idem:k"]
    assert table.succeed(claim).code is Code.OK
    assert table.status(task_id) is Status.SUCCEEDED
    assert table.snapshot()["idem:k"] == before


@pytest.mark.parametrize("part", ["stats", "wake"])
def test_a_task_of_a_blocked_queue_expires_once_it_is_mended(part: str, timed: Table) -> None:
    blocked, other = timed.submit(ttl=1), timed.submit(ttl=1, queue="good")
    _make_foreign(timed, getattr(timed.keys, part)("q"))
    assert timed.clock is not None
    timed.clock.turn(1000)
    assert timed.expire().moved == 1
    assert (timed.status(blocked), timed.status(other)) == (Status.QUEUED, Status.EXPIRED)
    timed.redis("DEL", getattr(timed.keys, part)("q"))
    timed.clock.turn(60_000)
    assert timed.expire().moved == 1
    assert timed.status(blocked) is Status.EXPIRED


@pytest.mark.parametrize("schedule", ["retry", "delay"])
def test_a_bad_member_of_a_schedule_does_not_stop_those_behind_it(
    schedule: str, table: Table
) -> None:
    key = getattr(table.keys, f"{schedule}_schedule")
    status = Status.RETRYING if schedule == "retry" else Status.SCHEDULED
    task_id, _ = MAKERS[status](table)
    table.redis("ZADD", key, 1, "no-such-task", 2, "foreign", 3, task_id)
    table.redis("SET", table.keys.task("foreign"), "not ours")
    done = table.promote(schedule)
    assert (done.moved, done.bad) == (1, 1)
    assert table.status(task_id) is Status.QUEUED
    assert table.redis("ZCARD", key) == 0
    assert "TASK_CORRUPT" in table.events()


@pytest.mark.parametrize("part", ["stats", "wake"])
def test_a_foreign_key_of_the_queue_does_not_cost_a_running_task_its_lease(
    part: str, table: Table
) -> None:
    table.submit()
    claim = table.claim()
    _make_foreign(table, getattr(table.keys, part)("q"))
    assert table.renew(claim) is Code.OK
