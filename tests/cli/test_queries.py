"""Questions that take several reads, asked of a real Redis."""

from __future__ import annotations

import time

from cli.terminal import Terminal
from dtq_client.operating.pausing import pause
from dtq_client.queries.audit import check_log, newest_acts
from dtq_client.queries.counters import all_queues, statistics
from dtq_client.queries.events import newest_events
from dtq_client.queries.oldest import oldest_waiting
from dtq_core.keyspace import bands_of
from dtq_core.store import Store


def claim(store: Store, worker: str, slots: int, queue: str = "default") -> list[str]:
    """Claim tasks, in the order of partitions."""
    found = [
        store.run(calls.claim(worker, slots, bands_of([queue]))).claims for calls in store.calls
    ]
    return [claim.task_id for claims in found for claim in claims]


def test_counters_are_added_up_over_partitions(deployment: Terminal, store: Store) -> None:
    for _ in range(8):
        deployment.submit("add", queue="mail")
    deployment.submit("add", queue="reports", delay=60)
    deployment.client.cancel(deployment.submit("add", queue="reports"))
    mail, reports = all_queues(store)
    assert (mail.queue, mail.tasks["QUEUED"], mail.tasks["RUNNING"]) == ("mail", 8, 0)
    assert (reports.tasks["SCHEDULED"], reports.tasks["CANCELLED"]) == (1, 1)
    stats = statistics(store)
    assert (stats.queues, stats.workers) == (2, 0)
    assert stats.tasks["QUEUED"] == 8
    assert sum(partition.waiting for partition in stats.partitions) == 9
    assert sum(partition.ended for partition in stats.partitions) == 1
    assert all(partition.leader is None for partition in stats.partitions)


def test_events_of_all_partitions_are_in_the_order_of_time(
    deployment: Terminal, store: Store
) -> None:
    ids = []
    for _ in range(9):
        ids.append(deployment.submit("add"))
        time.sleep(0.002)
    assert [event.id for event in newest_events(store, 4)] == ids[-4:]
    assert [event.id for event in newest_events(store, 100)] == ids


def queues_of(store: Store) -> dict[int, list[str]]:
    return {keys.index: ["default", "mail"] for keys in store.partitions.all}


def test_the_oldest_waiting_is_the_first_that_no_worker_holds(
    deployment: Terminal, store: Store
) -> None:
    assert oldest_waiting(store, queues_of(store)) is None
    deployment.submit("add")
    time.sleep(0.05)
    deployment.submit("add", queue="mail", band="low")
    oldest = oldest_waiting(store, queues_of(store))
    assert oldest is not None
    assert (oldest.queue, oldest.band) == ("default", "normal")
    assert 0.05 <= oldest.seconds < 20
    claim(store, "w-1", 10)
    oldest = oldest_waiting(store, queues_of(store))
    assert oldest is not None
    assert (oldest.queue, oldest.band) == ("mail", "low")
    claim(store, "w-1", 10, "mail")
    assert oldest_waiting(store, queues_of(store)) is None


def test_what_a_dead_worker_left_waits_again(deployment: Terminal, store: Store) -> None:
    deployment.submit("add")
    time.sleep(0.02)
    deployment.submit("add", queue="mail")
    claim(store, "w-1", 10)
    for calls in store.calls:
        store.run(calls.abandon("w-1", bands_of(["default", "mail"])))
    oldest = oldest_waiting(store, queues_of(store))
    assert oldest is not None
    assert oldest.queue == "default"


def test_a_queue_that_is_paused_counts_once_however_many_partitions_there_are(
    deployment: Terminal, store: Store
) -> None:
    deployment.submit("add", queue="mail")
    deployment.submit("add", queue="reports")
    pause(store, ["mail", "reports"], "os:ann@here")
    pause(store, ["mail"], "os:ann@here")
    acts = newest_acts(store, 10)
    assert [(act.matched, act.changed) for act in acts] == [(2, 2), (1, 0)]
    assert {verdict.problem for verdict in check_log(store)} == {None}
