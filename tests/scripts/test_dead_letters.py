"""Dead letters, and what an operator does with them: requeue, discard; and purging what waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from dtq_client.operating.letters import Done, Filter, discard, find_letters, requeue
from dtq_client.operating.purging import purge
from dtq_client.operating.verifying import verify
from dtq_client.queries.audit import newest_acts
from dtq_core import reads
from dtq_core.decide import Finish
from dtq_core.errors import InvalidOptionError
from dtq_core.scripts import Code
from dtq_core.states import Status
from scripts.table import LONG_MS, Table

ID = "f" * 32


def dead(table: Table, **options: object) -> str:
    task_id = table.submit(**options)
    table.fail(table.claim())
    return task_id


def letters(table: Table) -> list[str]:
    return [fields[1].decode() for _, fields in table.redis("XRANGE", table.keys.dlq, "-", "+")]


def test_a_requeued_task_begins_anew_and_keeps_its_history(table: Table) -> None:
    task_id = table.submit(max_attempts=2, ttl=600)
    table.retry(table.claim())
    table.promote("retry")
    table.fail(table.claim())
    assert letters(table) == [task_id]
    assert table.requeue(task_id)[0] == (Code.OK, "QUEUED")
    assert letters(table) == []
    record = table.record(task_id)
    assert (record["attempt"], record["requeues"]) == ("1", "1")
    assert record.keys().isdisjoint({"finished_ms", "error", "expires_ms", "letter_id"})
    claim = table.claim()
    assert (claim.attempt, claim.max_attempts) == (1, 2)
    table.succeed(claim)
    found = table.store.read(reads.attempts(table.keys, task_id)) or []
    assert [(done.attempt, done.outcome) for done in found] == [
        *((1, "retry"), (2, "failed"), (1, "succeeded"))
    ]
    assert table.ttl(table.keys.task(task_id)) > 0


def test_a_worker_that_failed_it_before_can_change_a_requeued_task_no_more(table: Table) -> None:
    task_id = table.submit()
    old = table.claim()
    table.fail(old)
    table.requeue(task_id)
    assert table.finish(Finish.succeeded(old, b"1", LONG_MS))[0].code is Code.LOST
    new = table.claim()
    assert table.finish(Finish.succeeded(old, b"1", LONG_MS))[0].code is Code.LOST
    assert table.succeed(new).code is Code.OK


def test_a5_a_failed_task_without_a_letter_stays_once_it_is_requeued(table: Table) -> None:
    task_id = dead(table, dead_letter=False)
    assert table.ttl(table.keys.task(task_id)) > 0
    table.requeue(task_id)
    assert table.ttl(table.keys.task(task_id)) == table.ttl(table.keys.attempts(task_id)) == -1


def test_a_requeued_task_takes_its_idempotency_key_again(table: Table) -> None:
    task_id = dead(table, idempotency_key="k")
    table.requeue(task_id)
    key = table.keys.idempotency("k")
    assert (table.redis("HGET", key, "state"), table.ttl(key)) == (b"processing", -1)
    again = table.submit_all(table.submission(idempotency_key="k"))[0]
    assert (again.code, again.task_id) == (Code.DUPLICATE, task_id)


def test_a_key_that_another_task_took_meanwhile_stays_that_ones(table: Table) -> None:
    task_id = dead(table, idempotency_key="k")
    table.redis("DEL", table.keys.idempotency("k"))
    other = table.submit(idempotency_key="k")
    assert other != task_id
    table.requeue(task_id)
    assert table.redis("HGET", table.keys.idempotency("k"), "task").decode() == other
    for claim in table.take().claims:
        table.succeed(claim)
    assert table.redis("HGET", table.keys.idempotency("k"), "state") == b"completed"


def test_only_failures_are_requeued_and_the_audit_log_counts_them(table: Table) -> None:
    first, second = dead(table), dead(table)
    ids = [first, table.submit(), ID, second]
    codes = [answer.code for answer in table.requeue(*ids)]
    assert codes == [Code.OK, Code.ENDED, Code.UNKNOWN, Code.OK]
    assert [answer.code for answer in table.requeue(*ids)][::3] == [Code.AGAIN] * 2
    (act,) = newest_acts(table.store, 5)
    assert (act.action, act.matched, act.changed) == ("dlq.requeue", 4, 2)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_discarded_letter_leaves_nothing_but_its_id_in_the_audit_log(
    key: str | None, table: Table
) -> None:
    task_id = dead(table, idempotency_key=key)
    kept = dead(table)
    assert table.discard(task_id, ID) == [Code.OK, Code.UNKNOWN]
    assert letters(table) == [kept]
    assert not [name for name in table.snapshot() if task_id in name or name.startswith("idem")]
    assert newest_acts(table.store, 5)[-1].ids == [task_id]
    assert table.discard(task_id) == [Code.UNKNOWN], "again, it finds nothing"


def test_a_task_that_is_no_dead_letter_is_not_discarded(table: Table) -> None:
    task_id = dead(table)
    table.requeue(task_id)
    assert table.discard(task_id) == [Code.ENDED]
    assert table.status(task_id) is Status.QUEUED


def test_a_letter_whose_record_is_gone_or_broken_can_be_discarded(table: Table) -> None:
    gone, broken = dead(table), dead(table)
    table.redis("DEL", table.keys.task(gone))
    table.redis("HSET", table.keys.task(broken), "attempt", "x")
    entries = [entry.decode() for entry, _ in table.redis("XRANGE", table.keys.dlq, "-", "+")]
    for entry, task_id in zip(entries, (gone, broken), strict=True):
        assert table.discard(task_id, entry=entry) == [Code.OK]
    assert letters(table) == []


def test_a_purge_ends_what_waits_in_its_queue_and_nothing_else(table: Table) -> None:
    running = table.submit()
    claim = table.claim()
    queued, delayed = table.submit(), table.submit(delay=600)
    other, low = table.submit(queue="other"), table.submit(band="low")
    codes = table.purge(running, queued, delayed, other, low, ID, band="normal")
    assert codes == [
        *(Code.REQUESTED, Code.OK, Code.OK, Code.CONFLICT, Code.CONFLICT, Code.UNKNOWN)
    ]
    assert table.status(queued) is table.status(delayed) is Status.CANCELLED
    assert table.record(queued)["error"] == "purged: because"
    assert table.succeed(claim).code is Code.OK
    assert table.purge(other, queue="other") == [Code.OK]
    assert newest_acts(table.store, 5)[0].changed == 3


def test_what_was_given_back_is_purged_with_the_rest(table: Table) -> None:
    task_id = table.submit()
    table.release(table.claim())
    assert table.purge(task_id) == [Code.OK]
    assert table.reclaim().claims == table.take().claims == []
    assert table.redis("XLEN", table.stream()) == 0


def test_one_operation_requeues_a_task_once_even_if_it_fails_again(table: Table) -> None:
    task_id = dead(table)
    table.requeue(task_id)
    table.fail(table.claim())
    assert table.requeue(task_id)[0].code is Code.AGAIN
    assert table.status(task_id) is Status.DEAD_LETTERED


def test_a_requeue_of_many_ends_while_all_of_them_fail_again(table: Table) -> None:
    count = 450
    ids = [dead(table, max_attempts=1) for _ in range(count)]

    def fail_all(_: int) -> None:
        for claim in table.take(slots=500).claims:
            table.fail(claim)

    done = requeue(table.store, Filter(queue="q"), "os:ann@here", rate=1e6, progress=fail_all)
    assert done == Done(count, count)
    assert {table.record(task_id)["requeues"] for task_id in ids} == {"1"}


def test_a_task_that_has_failed_anew_is_not_what_the_filter_saw(table: Table) -> None:
    task_id = dead(table)
    old = table.record(task_id)["letter_id"]
    table.requeue(task_id)
    table.fail(table.claim())
    assert table.discard(task_id, entry=old) == [Code.ENDED]
    act = table.operation("another")._replace(id="0" * 32)
    answers = table.run(table.calls.requeue(act, [(old, task_id)]))
    assert [answer.code for answer in answers] == [Code.ENDED]
    assert letters(table) == [task_id]
    assert table.status(task_id) is Status.DEAD_LETTERED


def test_a_letter_of_a_record_of_another_type_is_listed_and_can_be_discarded(table: Table) -> None:
    task_id, good = dead(table), dead(table)
    table.redis("DEL", table.keys.task(task_id))
    table.redis("SET", table.keys.task(task_id), "foreign")
    found = list(find_letters(table.store, Filter()))
    assert [(letter.id, letter.name) for letter in found] == [(task_id, ""), (good, "name")]
    assert discard(table.store, Filter(), "os:ann@here") == Done(2, 2)


def test_ids_and_filters_do_not_mix() -> None:
    with pytest.raises(InvalidOptionError, match="not both"):
        Filter(ids=[ID], queue="q")


def test_o2_a_purge_that_is_broken_off_or_done_by_two_leaves_all_in_order(table: Table) -> None:
    for _ in range(6):
        table.submit_all(*(table.submission() for _ in range(500)))
    table.submit_all(*(table.submission(delay=600) for _ in range(500)))
    running = table.claim()

    purged: list[int] = []

    def break_off(done: int) -> None:
        purged.append(done)
        if done >= 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        purge(table.store, "q", "os:ann@here", progress=break_off)
    assert verify(table.store, "os:ann@here").kinds == []
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(purge, table.store, "q", "os:ann@here") for _ in range(2)]
    assert sum(future.result().changed for future in both) == 3500 - 1 - purged[-1]
    assert verify(table.store, "os:ann@here").kinds == []
    assert table.counters()["RUNNING"] == 1
    assert table.succeed(running).code is Code.OK
