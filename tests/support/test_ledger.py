"""The ledger itself: it is silent about what is right, and names each thing that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from dtq_core.record import Options, SubmissionForm
from dtq_core.settings import Settings
from dtq_core.store import Store
from support.hand import Hand
from support.keys import check_keys
from support.ledger import check_ledger

ONCE = range(1, 2)


@pytest.fixture
def hand(settings: Settings) -> Iterator[Hand]:
    with closing(Hand(settings)) as made:
        yield made


def _submit(store: Store, **options: object) -> str:
    form = SubmissionForm("name", Options(**options), store.settings)  # type: ignore[arg-type]
    made = form.submission(store.partitions.new_id(), b"[[],{}]")
    return store.run(store.calls[0].submit([made]))[0].task_id


@pytest.fixture
def done(store: Store, hand: Hand) -> str:
    """A task that succeeded at its second attempt, so that all keys of a task are there."""
    task_id = _submit(store, idempotency_key="k")
    hand.retry(hand.claim()[0], 0)
    store.run(store.calls[0].promote("retry"))
    hand.run_all(1)
    return task_id


def _complaints(store: Store, *accepted: str) -> str:
    with pytest.raises(AssertionError) as caught:
        check_ledger(store, accepted)
    return str(caught.value)


@pytest.mark.ledger_checked
def test_it_is_silent_where_all_tasks_have_ended(store: Store, hand: Hand) -> None:
    ids = [_submit(store) for _ in range(5)]
    first, second, third, *others = hand.claim(5)
    hand.succeed(first)
    hand.fail(second)
    hand.cancelled(third)
    for claim in others:
        hand.succeed(claim)
    check_ledger(store, ids, dict.fromkeys(ids, 1), ONCE)


def test_it_names_what_is_lost_or_has_not_ended(store: Store) -> None:
    waiting, lost = _submit(store), "0" * 32
    found = _complaints(store, waiting, lost)
    assert f"{lost} is lost: it has no record" in found
    assert f"{waiting} has not ended: it is QUEUED" in found
    assert f"{waiting} is still in {store.partitions.all[0].stream('default', 'normal')}" in found


@pytest.mark.parametrize("started", [0, 2])
def test_it_counts_executions(started: int, store: Store, done: str) -> None:
    with pytest.raises(AssertionError, match=f"{done} was executed {started} times"):
        check_ledger(store, [done], {done: started}, ONCE)


def _add(key: Callable[[Store, str], str], *command: object) -> Callable[[Store, str], object]:
    """Make a command that puts the task into some key."""

    def act(store: Store, task_id: str) -> object:
        name, *rest = (task_id if word == "ID" else word for word in command)
        return store.link.command(name, key(store, task_id), *rest)

    return act


HURTS: dict[str, tuple[Callable[[Store, str], object], str]] = {
    "a schedule": (
        _add(lambda s, _: s.partitions.all[0].retry_schedule, "ZADD", 1, "ID"),
        "is still in {prefix}:retry:schedule, as SUCCEEDED",
    ),
    "the expiry": (
        _add(lambda s, _: s.partitions.all[0].expiry, "ZADD", 1, "ID"),
        "is still in {prefix}:expiry",
    ),
    "a stream": (
        _add(lambda s, _: s.partitions.all[0].stream("default", "low"), "XADD", "*", "id", "ID"),
        "is still in {prefix}:stream:default:low, as SUCCEEDED",
    ),
    "a dead letter": (
        _add(lambda s, _: s.partitions.all[0].dlq, "XADD", "*", "id", "ID"),
        "is 1 times among the dead letters, as SUCCEEDED",
    ),
    "no dead letter": (
        _add(lambda s, i: s.partitions.all[0].task(i), "HSET", "status", "DEAD_LETTERED"),
        "is 0 times among the dead letters, as DEAD_LETTERED",
    ),
    "a counter": (
        _add(lambda s, _: s.partitions.all[0].stats("default"), "HSET", "RUNNING", 1),
        "{prefix}:stats:default counts 1 RUNNING, there are 0",
    ),
    "no counter": (
        _add(lambda s, _: s.partitions.all[0].stats("default"), "DEL"),
        "{prefix}:stats:default counts 0 SUCCEEDED, there are 1",
    ),
}


@pytest.mark.parametrize("where", HURTS)
def test_it_finds_a_task_that_is_somewhere_else_too(where: str, store: Store, done: str) -> None:
    hurt, line = HURTS[where]
    hurt(store, done)
    assert line.format(prefix=store.settings.prefix) in _complaints(store, done)


KEY_HURTS: dict[str, tuple[tuple[str, ...], str]] = {
    "foreign": (("SET", "P:odd", "1"), "P:odd is no key of ours"),
    "unregistered": (("HSET", "P:stats:odd", "a", "1"), "P:stats:odd is no key of ours"),
    "durable": (("PEXPIRE", "P:events", "60000"), "P:events would pass"),
    "record": (("PERSIST", "P:task:ID"), "P:task:ID stays for ever, its task is SUCCEEDED"),
    "early": (("HSET", "P:task:ID", "status", "RETRYING"), "P:task:ID would pass as RETRYING"),
    "statusless": (("HDEL", "P:task:ID", "status"), "P:task:ID has no status"),
    "attempts": (("PERSIST", "P:attempts:ID"), "P:attempts:ID stays for ever"),
    "ownerless": (("DEL", "P:task:ID"), "P:attempts:ID has no task"),
    "result": (("PERSIST", "P:result:ID"), "P:result:ID stays for ever"),
    "wrong result": (("HSET", "P:task:ID", "status", "FAILED"), "is a result, its task is FAILED"),
    "wake": (("PERSIST", "P:wake:default"), "P:wake:default stays for ever"),
    "leader": (("SET", "P:leader:scheduler", "x 1"), "P:leader:scheduler stays for ever"),
    "worker": (("HSET", "P:worker:w", "a", "1"), "P:worker:w stays for ever"),
    "key": (("PERSIST", "P:idem:k"), "P:idem:k stays for ever"),
    "key state": (("HSET", "P:idem:k", "state", "failed"), "P:idem:k says failed"),
    "key owner": (("HSET", "P:idem:k", "task", "gone"), "P:idem:k belongs to gone"),
}


@pytest.mark.parametrize("what", KEY_HURTS)
def test_it_finds_a_key_without_an_owner_or_an_end(what: str, store: Store, done: str) -> None:
    def placed(word: str) -> str:
        return word.replace("P:", f"{store.settings.prefix}:").replace("ID", done)

    command, line = KEY_HURTS[what]
    check_keys(store)
    store.link.command(*map(placed, command))
    with pytest.raises(AssertionError) as caught:
        check_keys(store)
    assert placed(line) in str(caught.value)
    assert placed(line) in _complaints(store)
