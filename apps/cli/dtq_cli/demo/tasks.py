"""The tasks of a run: submitted, and read again at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dtq import Client, Handle, Status, TaskInfo
from dtq_cli.demo.compare import Outcome
from dtq_cli.demo.files import File, encode_path
from dtq_cli.demo.finding import Finding
from dtq_cli.demo.handlers import QUEUE, Run, examine, hopeless
from dtq_core import reads
from dtq_core.calls import batches
from dtq_core.reads import QueueInfo

FAILURES = 2
FAIL_EVERY = 10
"""One file in so many has a task that first fails, ``FAILURES`` times."""

_AIM_S = 8.0
_LONGEST_PAUSE_S = 0.5


def pause_s(tasks: int, at_a_time: int) -> float:
    """Return how long each task is to take at least.

    So long that the workers are in the middle of some at any moment, and so short that all are
    done in seconds.
    """
    return min(_LONGEST_PAUSE_S, _AIM_S * at_a_time / tasks)


@dataclass(frozen=True, slots=True)
class Submitted:
    """The tasks of a run.

    Attributes:
        of_files: one for each file, in order.
        doomed: the one that cannot succeed.
    """

    of_files: list[Handle[Finding]]
    doomed: Handle[None]

    @property
    def ids(self) -> list[str]:
        """The ids of all."""
        return [handle.id for handle in (*self.of_files, self.doomed)]


def submit(client: Client, files: Sequence[File], run: Run) -> Submitted:
    """Submit a task for each file, and one that cannot succeed."""
    calls = [
        (encode_path(file.path), FAILURES * (index % FAIL_EVERY == 0), run)
        for index, file in enumerate(files)
    ]
    return Submitted(client.submit_many(examine, calls), client.submit(hopeless, run))


def read_counters(client: Client) -> QueueInfo:
    """Return what dtq counts for the queue of the demo."""
    keys = client.store.partitions.all[0]
    return client.store.read(reads.queues(keys, [QUEUE]))[0]


def read_records(client: Client, ids: Sequence[str]) -> dict[str, TaskInfo]:
    """Return what dtq knows of tasks, by id."""
    keys = client.store.partitions.all[0]
    found = (client.store.read(reads.tasks(keys, batch)) for batch in batches(ids))
    return {record.id: record for records in found for record in records}


def read_outcomes(tasks: Submitted, records: dict[str, TaskInfo]) -> list[Outcome]:
    """Return what the workers found out about each file, or why they did not."""
    return [_outcome(handle, records.get(handle.id)) for handle in tasks.of_files]


def _outcome(handle: Handle[Finding], record: TaskInfo | None) -> Outcome:
    if record is None:
        return "its task is gone"
    if record.status is Status.SUCCEEDED:
        return handle.result(timeout=0)
    return f"its task is {record.status}: {record.error}"
