"""The ledger: what must hold at the end of every test that ran tasks.

Each accepted task is in exactly one terminal status, in no schedule and in no stream, and a dead
letter only if it says so; nothing is pending; counters agree with a recount; an idempotency record
agrees with its task; no key stays for ever but the declared durable ones. Executions are counted
outside dtq, by the handlers themselves, and lie within what the test allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from dtq_core.keyspace import GROUP, Keyspace
from dtq_core.states import Status
from dtq_core.store import Store


def check_ledger(
    store: Store,
    accepted: Collection[str],
    executions: Mapping[str, int] | None = None,
    allowed: range | None = None,
) -> None:
    """Fail with every disagreement there is, one a line."""
    wrong = [line for keys in store.partitions.all for line in _Partition(store, keys).wrong()]
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
        pattern = keys.prefix.replace("{", "[{]").replace("}", "[}]") + ":*"
        self._names = [name.decode() for name in self._raw("KEYS", pattern)]

    def wrong(self) -> Iterator[str]:
        yield from self._schedules()
        yield from self._streams()
        yield from self._counters()
        yield from self._dead_letters()
        yield from self._idempotency()
        yield from self._stays()

    def _of(self, kind: str) -> Iterator[tuple[str, str]]:
        """The keys of one kind, each with what its name ends in."""
        start = f"{self._keys.prefix}:{kind}:"
        return ((name, name[len(start) :]) for name in self._names if name.startswith(start))

    def _status(self, task_id: str) -> str | None:
        status = self._raw("HGET", self._keys.task(task_id), "status")
        return None if status is None else str(status.decode())

    def _schedules(self) -> Iterator[str]:
        keys = self._keys
        for schedule in (keys.retry_schedule, keys.delay_schedule, keys.expiry):
            if self._raw("ZCARD", schedule):
                yield f"{schedule} is not empty"

    def _streams(self) -> Iterator[str]:
        for name, _ in self._of("stream"):
            if length := self._raw("XLEN", name):
                yield f"{name} still holds {length} entries"
            if self._raw("XINFO", "GROUPS", name) and (
                pending := self._raw("XPENDING", name, GROUP)[0]
            ):
                yield f"{name} still has {pending} pending"

    def _counters(self) -> Iterator[str]:
        """Waiting and running counts are exact; ended ones are totals, at least what is left."""
        found: Counter[tuple[str, str]] = Counter()
        for name, _ in self._of("task"):
            queue, status = self._raw("HMGET", name, "queue", "status")
            found[queue.decode(), status.decode()] += 1
        for name, queue in self._of("stats"):
            for status in Status:
                counted = int(self._raw("HGET", name, status) or 0)
                there = found[queue, status]
                if counted < there or (counted > there and not status.terminal):
                    yield f"{name} counts {counted} {status}, there are {there}"

    def _dead_letters(self) -> Iterator[str]:
        for _, fields in self._raw("XRANGE", self._keys.dlq, "-", "+"):
            task_id = fields[1].decode()
            if self._status(task_id) not in {Status.DEAD_LETTERED, None}:
                yield f"{task_id} is a dead letter and {self._status(task_id)}"

    def _idempotency(self) -> Iterator[str]:
        states = {Status.SUCCEEDED: "completed"}
        for name, key in self._of("idem"):
            task_id, state = (value.decode() for value in self._raw("HMGET", name, "task", "state"))
            status = self._status(task_id)
            if status is None:
                yield f"{name} belongs to {task_id}, which is gone"
            elif state != states.get(Status(status), "failed"):
                yield f"{name} says {state}, its task is {status}"
            if self._raw("HGET", self._keys.task(task_id), "idem_key") != key.encode():
                yield f"{name} belongs to {task_id}, which has another key"

    def _stays(self) -> Iterator[str]:
        keys = self._keys
        durable = {keys.events, keys.dlq, keys.queues, keys.workers}
        for name in self._names:
            kind = name.removeprefix(keys.prefix + ":").partition(":")[0]
            if name in durable or kind in {"stream", "stats", "meta"}:
                continue
            kept = kind in {"task", "attempts"} and (
                self._status(name.rpartition(":")[2]) == Status.DEAD_LETTERED
            )
            if not kept and self._raw("PTTL", name) == -1:
                yield f"{name} stays for ever"
