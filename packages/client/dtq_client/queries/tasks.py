"""Which tasks there are.

Ids come newest first, from what Redis has in order already (:mod:`dtq_client.queries.candidates`),
and their records are read batch by batch until enough of them match. The number of reads has a
limit: of a very large deployment only a part may be looked at, and the answer says which.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtq_client.queries.candidates import Candidate, Candidates, at_of, time_in
from dtq_core import reads
from dtq_core.record import TaskInfo
from dtq_core.states import Status
from dtq_core.store import Store

MOST_STEPS = 6_000
"""Reads of ids, each of which looks at 500 keys or entries."""
MOST_RECORDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks are wanted.

    Attributes:
        statuses: in one of these; in any where there are none.
        queue: in this queue; None for all.
        name: of this name; None for all.
        before: older than this task, by its id; None for the newest.
    """

    statuses: Collection[Status] = ()
    queue: str | None = None
    name: str | None = None
    before: str | None = None

    def matches(self, info: TaskInfo) -> bool:
        """Whether a task is wanted."""
        return (
            (not self.statuses or info.status in self.statuses)
            and self.queue in {None, info.queue}
            and self.name in {None, info.name}
        )


class Found(NamedTuple):
    """Tasks, the newest first.

    Attributes:
        tasks: no more than were asked for.
        more: whether others match.
        complete: whether all was looked at that these could be hidden by.
        unseen_before: where not: only older tasks may be missing; RFC 3339, None for any.
    """

    tasks: list[TaskInfo]
    more: bool
    complete: bool = True
    unseen_before: str | None = None


def find_tasks(store: Store, wanted: Wanted, limit: int, steps: int | None = None) -> Found:
    """Return the newest tasks that match.

    Args:
        store: where to look.
        wanted: which ones.
        limit: how many tasks at most.
        steps: after so many reads of ids the rest is not looked at; ``MOST_STEPS`` unless given.

    Raises:
        RedisError: if the server cannot say.
    """
    candidates = Candidates(
        store, wanted.statuses, wanted.queue, MOST_STEPS if steps is None else steps
    )
    found: list[TaskInfo] = []
    looked_at = 0
    for batch in candidates.batches():
        batch = [one for one in batch if wanted.before is None or one.task_id < wanted.before]
        if not batch:
            continue
        if looked_at >= MOST_RECORDS:
            return _answer(found, limit, max(time_in(batch[0].task_id), candidates.unseen or ""))
        looked_at += len(batch)
        found += filter(wanted.matches, _records(store, batch))
        if len(found) > limit:
            break
    return _answer(found, limit, candidates.unseen)


def _answer(found: list[TaskInfo], limit: int, unseen: str | None) -> Found:
    """Say what is known of those that are missing: nothing newer than the time given is."""
    shown, more = found[:limit], len(found) > limit
    complete = unseen is None or (more and time_in(shown[-1].id) > unseen)
    return Found(shown, more, complete, None if complete or unseen is None else at_of(unseen))


def _records(store: Store, batch: Sequence[Candidate]) -> Iterator[TaskInfo]:
    """Read records, in the order given; those that are gone are left out."""
    infos: dict[Candidate, TaskInfo] = {}
    for index in {item.partition for item in batch}:
        ids = [item.task_id for item in batch if item.partition == index]
        found = store.read(reads.tasks(store.partitions.all[index], ids))
        infos.update((Candidate(info.id, index), info) for info in found)
    return (infos[item] for item in batch if item in infos)
