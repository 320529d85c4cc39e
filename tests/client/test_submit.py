"""Submitting one task: by its handler, with every option, by name."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from client.tasks import add
from dtq import Status
from dtq_core.record import decode_spec
from dtq_core.settings import Settings
from support.hand import Hand


def test_a_submitted_task_is_queued_with_its_arguments(client: Any, hand: Hand) -> None:
    handle = client.submit(add, 3, right=4)
    info = handle.info()
    assert (info.id, info.name, info.status) == (handle.id, "add", Status.QUEUED)
    assert (info.queue, info.band, info.attempt, info.max_attempts) == ("default", "normal", 1, 3)
    assert not handle.duplicate
    (claim,) = hand.claim()
    assert (claim.task_id, claim.entry_id) == (
        handle.id,
        hand.field(handle.id, "entry_id").decode(),
    )
    assert add.decode(claim.payload) == ((3, 4), {})


@pytest.mark.parametrize("by_name", [False, True], ids=["by handler", "by name"])
def test_every_option_is_kept(client: Any, hand: Hand, by_name: bool) -> None:
    options = {
        "queue": "mail",
        "band": "high",
        "ttl": 60,
        "max_attempts": 7,
        "timeout": 2.5,
        "dead_letter": False,
        "result_ttl": 30,
        "idempotency_key": "k",
    }
    if by_name:
        handle = client.submit_by_name("add", (1,), {"right": 2}, **options)
    else:
        handle = client.submit(add.options(**options), 1, right=2)
    info = handle.info()
    assert (info.queue, info.band, info.max_attempts) == ("mail", "high", 7)
    assert info.idempotency_key == "k"
    assert _seconds(info.submitted_at, info.expires_at) == 60
    (claim,) = hand.claim(queue="mail")
    spec = decode_spec(claim.spec)
    assert (spec.name, spec.timeout, spec.result_ttl) == ("add", 2.5, 30)
    assert add.decode(claim.payload) == ((1, 2), {})
    hand.fail(claim)
    assert handle.status() is Status.FAILED, "its permanent failure is not dead-lettered"


def test_a_delayed_task_waits_in_the_schedule(client: Any, hand: Hand) -> None:
    handle = client.submit(add.options(delay=90), 1)
    info = handle.info()
    assert info.status is Status.SCHEDULED
    assert _seconds(info.submitted_at, info.due_at) == 90
    assert hand.entries() == []


@pytest.mark.parametrize("settings", [3], indirect=True)
def test_tasks_are_spread_over_the_partitions(client: Any, hand: Hand, settings: Settings) -> None:
    handles = [client.submit(add, number) for number in range(60)]
    used = {hand.store.keys_of(handle.id).index for handle in handles}
    assert used == set(range(settings.partitions))
    assert sorted(claim.task_id for claim in hand.claim(60)) == sorted(h.id for h in handles)


def test_a_handle_by_id_is_the_same_task(client: Any, hand: Hand) -> None:
    submitted = client.submit(add, 1, 2)
    handle = client.handle(submitted.id)
    assert handle.status() is Status.QUEUED
    hand.run_all(1, 3)
    assert handle.result(timeout=5) == 3
    assert [attempt.outcome for attempt in handle.attempts()] == ["succeeded"]


def test_ids_are_sorted_by_time_of_submission(client: Any) -> None:
    ids = [client.submit(add, number).id for number in range(20)]
    assert ids == sorted(ids)


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)) / timedelta(seconds=1)
