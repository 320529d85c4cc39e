"""The ledger: what must hold at the end of every test that ran tasks.

Each accepted task is in exactly one terminal status, in no schedule and in no stream, and once
among the dead letters if, and only if, it is one; nothing is pending; counters agree with a
recount; every key has its owner and its time to live. Executions are counted outside dtq, by the
handlers themselves, and lie within what the test allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from dtq_core.keyspace import GROUP, Keyspace
from dtq_core.states import Status
from dtq_core.store import Store
from support.keys import names_of, wrong_keys


def check_ledger(
    store: Store,
    accepted: Collection[str],
    executions: Mapping[str, int] | None = None,
    allowed: range | None = None,
) -> None:
    """Fail with every disagreement there is, one a line.

    Args:
        store: of the deployment.
        accepted: the ids that submit returned.
        executions: how often the handler of each id was started, as the handlers wrote down.
        allowed: how often it may have been.
    """
    wrong = [line for keys in store.partitions.all for line in _Partition(store, keys).wrong()]
    wrong += wrong_keys(store)
    for task_id in accepted:
        wrong += _wrong_task(store, task_id)
        if executions is not None and allowed is not None:
            started = executions.get(task_id, 0)
            if started not in allowed:
                wrong.append(f"{task_id} was executed {started} times, allowed is {allowed}")
    assert not wrong, "the ledger disagrees:\n" + "\n".join(wrong)


def _wrong_task(store: Store, task_id: str) -> Iterator[str]:
    status = store.link.raw("HGET", store.keys_of(task_id).task(task_id), "status")
    if status is None:
        yield f"{task_id} is lost: it has no record"
    elif not Status(status.decode()).terminal:
        yield f"{task_id} has not ended: it is {status.decode()}"


class _Partition:
    def __init__(self, store: Store, keys: Keyspace) -> None:
        self._raw = store.link.raw
        self._keys = keys
        self._names = names_of(store, keys)
        self._records = dict(self._read_records())

    def wrong(self) -> Iterator[str]:
        yield from self._schedules()
        yield from self._streams()
        yield from self._counters()
        yield from self._dead_letters()

    def _of(self, start: str) -> Iterator[tuple[str, str]]:
        """The keys that begin so, each with what its name ends in."""
        found = (name for name in self._names if name.startswith(start))
        return ((name, name.removeprefix(start)) for name in found)

    def _read_records(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Each task with its queue and status."""
        for name, task_id in self._of(self._keys.task("")):
            queue, status = self._raw("HMGET", name, "queue", "status")
            if queue and status:
                yield task_id, (queue.decode(), status.decode())

    def _status(self, task_id: str) -> str | None:
        return self._records.get(task_id, (None, None))[1]

    def _schedules(self) -> Iterator[str]:
        keys = self._keys
        for schedule in (keys.retry_schedule, keys.delay_schedule, keys.expiry):
            for member in self._raw("ZRANGE", schedule, 0, -1):
                task_id = member.decode()
                yield f"{task_id} is still in {schedule}, as {self._status(task_id)}"

    def _streams(self) -> Iterator[str]:
        for name, _ in self._of(self._keys.stream("", "").removesuffix(":")):
            for entry, fields in self._raw("XRANGE", name, "-", "+"):
                task_id = fields[1].decode()
                yield f"{task_id} is still in {name}, as {self._status(task_id)}: {entry.decode()}"
            if self._raw("XINFO", "GROUPS", name):
                pending, *_ = self._raw("XPENDING", name, GROUP)
                if pending:
                    yield f"{name} still has {pending} pending"

    def _counters(self) -> Iterator[str]:
        """Waiting and running counts are exact; ended ones are totals, at least what is left."""
        found = Counter(self._records.values())
        queues = {queue for queue, _ in found} | {q for _, q in self._of(self._keys.stats(""))}
        for queue in sorted(queues):
            name = self._keys.stats(queue)
            for status in Status:
                counted = int(self._raw("HGET", name, status) or 0)
                there = found[queue, status]
                if counted < there or (counted > there and not status.terminal):
                    yield f"{name} counts {counted} {status}, there are {there}"

    def _dead_letters(self) -> Iterator[str]:
        """Whatever had no record of ours may be among them as well: it was moved aside."""
        entries = self._raw("XRANGE", self._keys.dlq, "-", "+")
        letters = Counter(fields[1].decode() for _, fields in entries)
        for task_id, (_, status) in self._records.items():
            if letters[task_id] != (1 if status == Status.DEAD_LETTERED else 0):
                yield f"{task_id} is {letters[task_id]} times among the dead letters, as {status}"
