"""Which tasks there are.

Ids are sorted by time, so the newest tasks are found once all ids are known. They are collected in
bounded steps (SCAN), of which there is a limit: of a Redis with very many keys only a part is
looked at, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from dtq_core import reads
from dtq_core.calls import batches
from dtq_core.record import TaskInfo
from dtq_core.states import Status
from dtq_core.store import Store

MOST_STEPS = 1_000
"""Steps of SCAN, each of which looks at 500 keys."""


class Found(NamedTuple):
    """Tasks, the newest first.

    Attributes:
        tasks: no more than were asked for.
        more: whether others match.
        complete: whether all tasks were looked at.
    """

    tasks: list[TaskInfo]
    more: bool
    complete: bool


class _Known(NamedTuple):
    """A task id, and the index of the partition it was found in."""

    task_id: str
    partition: int


def find_tasks(store: Store, statuses: Collection[Status], queue: str | None, limit: int) -> Found:
    """Return the newest tasks that match.

    Args:
        store: where to look.
        statuses: those wanted; all where there are none.
        queue: the one wanted; None for all.
        limit: how many tasks at most.

    Raises:
        RedisError: if the server cannot say.
    """
    known, complete = _collect(store)
    found: list[TaskInfo] = []
    for info in _records(store, sorted(known, reverse=True)):
        if (not statuses or info.status in statuses) and queue in {None, info.queue}:
            found.append(info)
            if len(found) > limit:
                break
    return Found(found[:limit], len(found) > limit, complete)


def _collect(store: Store) -> tuple[set[_Known], bool]:
    """Return what tasks there are, and whether these are all."""
    known: set[_Known] = set()
    steps = 0
    for keys in store.partitions.all:
        cursor = 0
        while True:
            if steps == MOST_STEPS:
                return known, False
            steps += 1
            page = store.read(reads.scan(keys, cursor))
            known.update(_Known(task_id, keys.index) for task_id in page.task_ids)
            cursor = page.cursor
            if cursor == 0:
                break
    return known, True


def _records(store: Store, known: Sequence[_Known]) -> Iterator[TaskInfo]:
    """Read records batch by batch, in the order given; those that are gone are left out."""
    for batch in batches(known):
        infos: dict[_Known, TaskInfo] = {}
        for index in {item.partition for item in batch}:
            ids = [item.task_id for item in batch if item.partition == index]
            found = store.read(reads.tasks(store.partitions.all[index], ids))
            infos.update((_Known(info.id, index), info) for info in found)
        yield from (infos[item] for item in batch if item in infos)
