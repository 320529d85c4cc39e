"""Which keys there may be, who owns each, and which of them pass: true at any moment.

A record stays until its task has ended, and for ever where it is a dead letter; a list of attempts
stays as long as its record; a result, a wake-up list, a heartbeat and a lease always pass; an
idempotency record stays until its task has ended. A queue with a stream or counters is registered.
What no :class:`Keyspace` spells is not ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dtq_core.keyspace import Keyspace, bands_of
from dtq_core.states import Status
from dtq_core.store import Store

_IDEMPOTENCY = {Status.SUCCEEDED: "completed"}


def check_keys(store: Store) -> None:
    """Fail with every key that should not be there, or not as it is, one a line."""
    wrong = list(wrong_keys(store))
    assert not wrong, "the keys disagree:\n" + "\n".join(wrong)


def wrong_keys(store: Store) -> Iterator[str]:
    for keys in store.partitions.all:
        yield from _Partition(store, keys).wrong()


def names_of(store: Store, keys: Keyspace) -> list[str]:
    """Every key of a partition."""
    pattern = keys.prefix.replace("{", "[{]").replace("}", "[}]") + ":*"
    return sorted(name.decode() for name in store.link.raw("KEYS", pattern))


class _Partition:
    def __init__(self, store: Store, keys: Keyspace) -> None:
        self._raw = store.link.raw
        self._keys = keys
        self._names = names_of(store, keys)
        queues = [queue.decode() for queue in self._raw("HKEYS", keys.queues)]
        self._stays = {
            *(store.partitions.meta, keys.events, keys.dlq, keys.queues, keys.workers),
            *(keys.retry_schedule, keys.delay_schedule, keys.expiry),
            *(keys.audit, keys.audit_head, keys.cron, keys.cron_schedule, keys.cron_state),
            *(keys.api_keys, keys.measures),
            *(keys.stream(queue, band) for queue, band in bands_of(queues)),
            *map(keys.stats, queues),
        }
        self._owned: dict[str, Callable[[str, bool], str | None]] = {
            keys.task(""): self._record,
            keys.attempts(""): self._attempts,
            keys.result(""): self._result,
            keys.idempotency(""): self._idempotency,
            **dict.fromkeys(
                (
                    *(keys.leader, keys.mark, keys.wake(""), keys.worker("")),
                    keys.operation("", "")[:-1],
                ),
                self._passing,
            ),
        }

    def wrong(self) -> Iterator[str]:
        for name in self._names:
            ttl = self._raw("PTTL", name)
            gone_meanwhile = ttl == -2
            if not gone_meanwhile and (problem := self._problem(name, ttl >= 0)):
                yield f"{name} {problem}"

    def _problem(self, name: str, passes: bool) -> str | None:
        if name in self._stays:
            return "would pass" if passes else None
        for start, problem in self._owned.items():
            if name.startswith(start):
                return problem(name.removeprefix(start), passes)
        return "is no key of ours, or of no queue that is registered"

    def _field(self, task_id: str, name: str) -> str | None:
        value = self._raw("HGET", self._keys.task(task_id), name)
        return None if value is None else str(value.decode())

    def _passing(self, _: str, passes: bool) -> str | None:
        return None if passes else "stays for ever"

    def _record(self, task_id: str, passes: bool) -> str | None:
        status = self._field(task_id, "status")
        if status is None:
            return "has no status"
        to_pass = Status(status).terminal and status != Status.DEAD_LETTERED
        return None if passes is to_pass else _should(status, to_pass)

    def _attempts(self, task_id: str, passes: bool) -> str | None:
        status = self._field(task_id, "status")
        return "has no task" if status is None else self._record(task_id, passes)

    def _result(self, task_id: str, passes: bool) -> str | None:
        status = self._field(task_id, "status")
        if status != Status.SUCCEEDED:
            return f"is a result, its task is {status}"
        return self._passing(task_id, passes)

    def _idempotency(self, key: str, passes: bool) -> str | None:
        record = self._raw("HMGET", self._keys.idempotency(key), "task", "state")
        owner, state = ((value or b"").decode() for value in record)
        status = self._field(owner, "status")
        if status is None or self._field(owner, "idem_key") != key:
            return f"belongs to {owner}, which is gone or has another key"
        ended = Status(status).terminal
        right = _IDEMPOTENCY.get(Status(status), "failed") if ended else "processing"
        if state != right:
            return f"says {state}, its task is {status}"
        return None if passes is ended else _should(status, ended)


def _should(status: str, to_pass: bool) -> str:
    return f"stays for ever, its task is {status}" if to_pass else f"would pass as {status}"
