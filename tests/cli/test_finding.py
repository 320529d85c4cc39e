"""Which tasks ``dtq list`` finds, and what it looks at for that."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from cli.terminal import Terminal
from dtq_cli import main
from dtq_client.queries import candidates, tasks
from dtq_client.queries.tasks import Found, Wanted, find_tasks
from dtq_core import reads
from dtq_core.clock import rfc3339
from dtq_core.states import Status
from dtq_core.store import Store
from support.hand import Hand


@pytest.fixture
def hand(store: Store) -> Iterator[Hand]:
    made = Hand(store.settings)
    yield made
    made.store.close()


def submit_some(deployment: Terminal, count: int, **options: object) -> list[str]:
    ids = []
    for _ in range(count):
        ids.append(deployment.submit("add", **options))
        time.sleep(0.002)  # ids are sorted by milliseconds
    return ids


def found_ids(store: Store, wanted: Wanted, limit: int = 50) -> list[str]:
    found = find_tasks(store, wanted, limit)
    assert found.complete
    return [info.id for info in found.tasks]


def test_the_newest_of_all_partitions_come_first(deployment: Terminal, store: Store) -> None:
    ids = []
    for _ in range(12):
        ids.append(deployment.submit("add"))
        time.sleep(0.002)  # ids are sorted by milliseconds
    found = find_tasks(store, Wanted(), 5)
    assert [info.id for info in found.tasks] == ids[:-6:-1]
    assert found.more
    assert found.complete
    assert not find_tasks(store, Wanted(), 12).more


def test_tasks_are_found_by_status_and_queue(deployment: Terminal, store: Store) -> None:
    mail = deployment.submit("add", queue="mail")
    later = deployment.submit("add", queue="mail", delay=60)
    deployment.submit("add")
    by_queue = find_tasks(store, Wanted(queue="mail"), 50).tasks
    assert {info.id for info in by_queue} == {mail, later}
    both = find_tasks(store, Wanted({Status.SCHEDULED}, "mail"), 50).tasks
    assert [info.id for info in both] == [later]
    assert find_tasks(store, Wanted({Status.FAILED}), 50) == Found([], more=False)


def test_foreign_keys_do_not_break_a_list(deployment: Terminal, store: Store) -> None:
    task_id = deployment.submit("add")
    prefix = store.partitions.all[0].prefix
    deployment.raw.set(f"{prefix}:task:text", "not ours")
    deployment.raw.hset(f"{prefix}:task:hash", "what", "not ours")
    deployment.raw.hset(f"{prefix}:task:{'f' * 32}", "status", "LOST")
    assert [info.id for info in find_tasks(store, Wanted(), 50).tasks] == [task_id]


def in_every_status(deployment: Terminal, hand: Hand) -> dict[Status, list[str]]:
    """Bring three tasks into each status that has an index, and others to their end."""
    ids = {}
    ids[Status.DEAD_LETTERED] = submit_some(deployment, 3)
    for claim in hand.claim(3):
        hand.fail(claim)
    ids[Status.RETRYING] = submit_some(deployment, 3)
    for claim in hand.claim(3):
        hand.retry(claim)
    submit_some(deployment, 3)
    hand.run_all(3)
    ids[Status.RUNNING] = submit_some(deployment, 3)
    hand.claim(3)
    ids[Status.QUEUED] = submit_some(deployment, 2) + submit_some(deployment, 1, band="low")
    ids[Status.SCHEDULED] = submit_some(deployment, 3, delay=60)
    deployment.client.cancel(deployment.submit("add", delay=60))
    return ids


def test_what_waits_runs_or_is_dead_is_found_without_a_walk_over_all(
    deployment: Terminal, store: Store, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = in_every_status(deployment, hand)
    assert set(ids) == candidates.INDEXED
    monkeypatch.delattr(reads, "scan")
    deployment.raw.delete(*(keys.events for keys in store.partitions.all))
    for status, expected in ids.items():
        assert found_ids(store, Wanted({status})) == expected[::-1], status
    both = ids[Status.RUNNING] + ids[Status.QUEUED]
    assert found_ids(store, Wanted({Status.QUEUED, Status.RUNNING})) == both[::-1]
    everything = sorted((task_id for found in ids.values() for task_id in found), reverse=True)
    assert found_ids(store, Wanted(candidates.INDEXED)) == everything
    assert found_ids(store, Wanted({Status.QUEUED}, queue="mail")) == []


def test_the_newest_are_found_by_their_events(
    deployment: Terminal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = submit_some(deployment, 60)  # so many that each partition has some of the older ones
    monkeypatch.delattr(reads, "scan")
    found = find_tasks(store, Wanted(), 3)
    assert [info.id for info in found.tasks] == ids[:-4:-1]
    assert (found.more, found.complete) == (True, True)


def test_what_is_older_than_all_events_is_found_by_a_walk(
    deployment: Terminal, store: Store
) -> None:
    old = submit_some(deployment, 4)
    deployment.raw.delete(*(keys.events for keys in store.partitions.all))
    ids = old + submit_some(deployment, 4)
    assert found_ids(store, Wanted()) == ids[::-1]
    assert found_ids(store, Wanted(name="add"), 8) == ids[::-1]


def test_tasks_are_found_by_name(deployment: Terminal, store: Store) -> None:
    submit_some(deployment, 2)
    echo = deployment.submit("echo", 1)
    assert found_ids(store, Wanted(name="echo")) == [echo]
    assert found_ids(store, Wanted({Status.QUEUED}, name="echo")) == [echo]
    assert found_ids(store, Wanted(name="other")) == []


def test_pages_of_a_long_queue_are_read_only_as_far_as_needed(
    deployment: Terminal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = sorted((deployment.submit("add") for _ in range(1_100)), reverse=True)
    assert found_ids(store, Wanted({Status.QUEUED}), 2_000) == ids
    monkeypatch.setattr(tasks, "MOST_STEPS", len(store.partitions.all))  # a page of each
    assert find_tasks(store, Wanted({Status.QUEUED}), 100).complete
    found = find_tasks(store, Wanted({Status.QUEUED}), 2_000)
    assert [info.id for info in found.tasks] == ids[: len(found.tasks)]
    assert not found.complete
    assert found.unseen_before is not None


def test_a_walk_is_bounded_and_says_so(
    deployment: Terminal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.submit("add")
    monkeypatch.setattr(tasks, "MOST_STEPS", 0)
    assert find_tasks(store, Wanted(), 50) == Found([], more=False, complete=False)


def test_of_records_too_no_more_than_so_many_are_looked_at(
    deployment: Terminal, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = deployment.submit("add")
    monkeypatch.setattr(tasks, "MOST_RECORDS", 0)
    found = find_tasks(store, Wanted({Status.QUEUED}), 50)
    assert not found.complete
    assert found.unseen_before is not None
    assert found.unseen_before >= rfc3339(int(task_id[:12], 16))


def test_the_command_says_what_it_did_not_look_at(
    deployment: Terminal,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    deployment.submit("add")
    common = ("--redis-url", str(store.settings.redis_url), "--prefix", deployment.prefix)
    command = ["list", *common, "--partitions", str(len(store.partitions.all))]
    assert main.run(command) == 0
    assert capsys.readouterr().err == ""
    said = "dtq: there is too much here to look at all of it: others {}may be missing\n"
    monkeypatch.setattr(tasks, "MOST_STEPS", 0)
    assert main.run(command) == 0
    assert capsys.readouterr().err == said.format("")
    monkeypatch.undo()
    monkeypatch.setattr(tasks, "MOST_RECORDS", 0)
    assert main.run([*command, "--status", "QUEUED"]) == 0
    assert re.fullmatch(said.format(r"submitted before \S+Z "), capsys.readouterr().err)
