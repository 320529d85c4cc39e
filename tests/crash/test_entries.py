"""A real worker meets entries that should not be there, and runs what is due, once, and no more.

One script has closed the window in which they come into being, so they are written by hand. A
server that comes back with an older state may still hold them.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from crash.handlers import fail_once, work
from dtq import Handle, Status
from dtq_core.errors import RedisError
from dtq_core.keyspace import GROUP
from support.eventually import eventually
from support.scene import Scene

DEAD = "a-dead-worker"


def add_entry(scene: Scene, handle: Handle[Any], *, own: bool = False) -> str:
    """Write another entry of a task; it may be the one that the record names."""
    keys, info = scene.hand.store.keys_of(handle.id), handle.info()
    stream = keys.stream(info.queue, info.band)
    fields = ("id", handle.id, "attempt", info.attempt)
    entry: str = scene.hand.command("XADD", stream, "*", *fields).decode()
    if own:
        scene.hand.command("HSET", keys.task(handle.id), "entry_id", entry)
    return entry


def deliver_all(scene: Scene) -> None:
    """Deliver what is new to a worker that is dead."""
    command = scene.hand.command
    for keys in scene.hand.store.partitions.all:
        stream = keys.stream("default", "normal")
        if not command("EXISTS", stream):
            continue
        with contextlib.suppress(RedisError):  # it is there
            command("XGROUP", "CREATE", stream, GROUP, "0")
        command("XREADGROUP", "GROUP", GROUP, DEAD, "COUNT", 100, "STREAMS", stream, ">")


def end_as(scene: Scene, status: Status) -> Handle[Any]:
    """Submit a task, and end it by hand."""
    hand = scene.hand
    dead_letter = status is Status.DEAD_LETTERED
    ttl = 0 if status is Status.EXPIRED else None
    handle = scene.submit(work.options(dead_letter=dead_letter, ttl=ttl))
    if status is Status.CANCELLED:
        handle.cancel()
    elif status is Status.EXPIRED:
        hand.store.run(hand.store.calls_of(handle.id).expire())
    elif status is Status.SUCCEEDED:
        hand.run_all(1)
    else:
        hand.fail(hand.claim()[0])
    assert handle.status() is status
    return handle


TERMINAL = [status for status in Status if status.terminal]


@pytest.mark.parametrize("settings", [1, 3], indirect=True)
@pytest.mark.parametrize("own", [True, False], ids=["its own entry", "another entry"])
def test_a_pending_entry_of_an_ended_task_is_absorbed_not_run(scene: Scene, own: bool) -> None:
    handles = [end_as(scene, status) for status in TERMINAL]
    for handle in handles:
        add_entry(scene, handle, own=own)
    deliver_all(scene)
    assert scene.hand.pending() == len(TERMINAL)
    scene.worker()
    eventually("the entries to be gone", lambda: scene.hand.pending() == 0)
    assert [handle.status() for handle in handles] == TERMINAL
    assert [scene.absorbed(handle.id) for handle in handles] == [1] * len(TERMINAL)
    assert not any(scene.starts(handle) for handle in handles)


def test_an_undelivered_entry_of_an_ended_task_is_absorbed_not_run(scene: Scene) -> None:
    handles = [end_as(scene, status) for status in TERMINAL]
    for handle in handles:
        add_entry(scene, handle, own=True)
    scene.worker()
    eventually("the entries to be gone", lambda: not scene.hand.entries())
    assert [handle.status() for handle in handles] == TERMINAL
    assert [scene.absorbed(handle.id) for handle in handles] == [1] * len(TERMINAL)
    assert not any(scene.starts(handle) for handle in handles)


@pytest.mark.parametrize("own", [True, False], ids=["its own entry", "another entry"])
def test_a_pending_entry_of_a_task_between_two_attempts_is_absorbed_not_run(
    scene: Scene, own: bool
) -> None:
    handle = scene.submit(fail_once)
    scene.hand.retry(scene.hand.claim()[0], delay_ms=60_000)
    add_entry(scene, handle, own=own)
    deliver_all(scene)
    scene.worker()
    eventually("the entry to be gone", lambda: scene.hand.pending() == 0)
    assert (handle.status(), scene.absorbed(handle.id)) == (Status.RETRYING, 1)
    assert scene.starts(handle) == []
    scene.hand.command("ZADD", scene.hand.store.keys_of(handle.id).retry_schedule, 0, handle.id)
    scene.scheduler()
    assert handle.result(timeout=20) == 2
    assert scene.starts(handle) == [2]


def test_an_entry_that_was_delivered_and_never_claimed_costs_no_attempt(scene: Scene) -> None:
    """Pending for a dead worker while the record is still QUEUED: taken over like a new one."""
    handle = scene.submit(work, 7)
    deliver_all(scene)
    assert (handle.status(), scene.hand.pending()) == (Status.QUEUED, 1)
    scene.worker()
    assert handle.result(timeout=20) == 7
    assert (handle.info().attempt, scene.starts(handle)) == (1, [1])


def test_two_entries_of_one_attempt_are_one_execution(scene: Scene) -> None:
    """Overlapping passes over a schedule may leave them."""
    handles = [scene.submit(work, number) for number in range(10)]
    for handle in handles:
        add_entry(scene, handle)
    scene.worker()
    assert [handle.result(timeout=20) for handle in handles] == list(range(10))
    eventually("the second entries to be gone", lambda: not scene.hand.entries())
    assert [scene.absorbed(handle.id) for handle in handles] == [1] * 10
    assert [scene.starts(handle) for handle in handles] == [[1]] * 10
