"""A small table to set tasks on: bring one into any state, call any script, look at every key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dtq_core import reads
from dtq_core.calls import Ended, Submitted, Taken
from dtq_core.decide import Finish, Release
from dtq_core.keyspace import bands_of
from dtq_core.limits import Band
from dtq_core.outcome import ErrorInfo
from dtq_core.record import Attempt, Claim, Options, SubmissionForm
from dtq_core.states import Status
from dtq_core.store import Store

QUEUE = "q"
PAYLOAD = b"[[1],{}]"
ERROR = ErrorInfo("ValueError", "no")
LONG_MS = 600_000


class Table:
    """One partition and everything that acts on it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keys = store.partitions.all[0]
        self.calls = store.calls[0]
        self.bands = bands_of([QUEUE])
        self._cursors = [b"0-0"] * len(self.bands)

    # what clients do

    def submission(
        self, payload: bytes = PAYLOAD, task_id: str | None = None, **options: Any
    ) -> Any:
        made = Options(**{"queue": QUEUE, **options})
        new_id = task_id or self.store.partitions.new_id()
        form = SubmissionForm("name", made, self.store.settings)
        return form.submission(new_id, payload)

    def submit_all(self, *submissions: Any) -> list[Submitted]:
        return self.store.run(self.calls.submit(submissions))

    def submit(self, payload: bytes = PAYLOAD, **options: Any) -> str:
        return self.submit_all(self.submission(payload, **options))[0].task_id

    def cancel(self, *task_ids: str) -> list[Ended]:
        return self.store.run(self.calls.cancel(task_ids, "because"))

    # what workers do

    def take(self, worker: str = "w1", slots: int = 10) -> Taken:
        return self.store.run(self.calls.claim(worker, slots, self.bands))

    def claim(self, worker: str = "w1") -> Claim:
        taken = self.take(worker, 1)
        assert len(taken.claims) == 1, taken
        return taken.claims[0]

    def reclaim(self, worker: str = "w2", slots: int = 10, idle_ms: int = LONG_MS) -> Taken:
        call = self.calls.reclaim(worker, slots, idle_ms, self.bands, self._cursors)
        taken = self.store.run(call)
        self._cursors = taken.cursors
        return taken

    def adopt(self, worker: str = "w1", *known: Claim) -> Taken:
        entries = [claim.entry for claim in known]
        return self.store.run(self.calls.adopt(worker, entries, self.bands))

    def finish(self, *finishes: Finish) -> list[Ended]:
        return self.store.run(self.calls.finish(finishes))

    def succeed(self, claim: Claim) -> Ended:
        return self.finish(Finish.succeeded(claim, b'"done"', LONG_MS))[0]

    def retry(self, claim: Claim, delay_ms: int = 0) -> Ended:
        return self.finish(Finish.retry(claim, ERROR, delay_ms))[0]

    def fail(self, claim: Claim) -> Ended:
        return self.finish(Finish.failed(claim, ERROR))[0]

    def release(self, claim: Claim, delay_ms: int = 0) -> Ended:
        what = Release.later(claim, "later", delay_ms) if delay_ms else Release.now(claim, "now")
        return self.store.run(self.calls.release([what]))[0]

    def renew(self, claim: Claim, worker: str = "w1", progress: bytes = b"") -> Any:
        lease = (claim.task_id, claim.lease, progress)
        return self.store.run(self.calls.renew(worker, [lease]))[0]

    def abandon(self, worker: str = "w1") -> Any:
        return self.store.run(self.calls.abandon(worker, self.bands))

    # what the scheduler does

    def promote(self, schedule: str) -> Any:
        return self.store.run(self.calls.promote(schedule))

    def expire(self) -> Any:
        return self.store.run(self.calls.expire())

    # what is seen

    def redis(self, *command: Any) -> Any:
        return self.store.link.raw(*command)

    def record(self, task_id: str) -> dict[str, str]:
        flat = [value.decode() for value in self.redis("HGETALL", self.keys.task(task_id))]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def status(self, task_id: str) -> Status | None:
        status = self.redis("HGET", self.keys.task(task_id), "status")
        return None if status is None else Status(status.decode())

    def attempts(self, task_id: str) -> list[Attempt]:
        return self.store.read(reads.attempts(self.keys, task_id)) or []

    def events(self) -> list[str]:
        return [event.type for event in self.store.read(reads.last_events(self.keys, 1000))]

    def stream(self, band: str = Band.NORMAL) -> str:
        return self.keys.stream(QUEUE, band)

    def pending(self, band: str = Band.NORMAL) -> int:
        summary = self.redis("XPENDING", self.stream(band), "workers")
        return int(summary[0])

    def length(self, band: str = Band.NORMAL) -> int:
        return int(self.redis("XLEN", self.stream(band)))

    def consumers(self, band: str = Band.NORMAL) -> set[str]:
        found = self.redis("XINFO", "CONSUMERS", self.stream(band), "workers")
        return {_named(info)["name"].decode() for info in found}

    def tokens(self) -> list[bytes]:
        return list(self.redis("LRANGE", self.keys.wake(QUEUE), 0, -1))

    def ttl(self, key: str) -> int:
        """Milliseconds; -1 for none, -2 where there is no such key."""
        return int(self.redis("PTTL", key))

    def counters(self) -> dict[str, int]:
        info = self.store.read(reads.queues(self.keys, [QUEUE]))[0]
        return {name: getattr(info, name) for name in info.__struct_fields__ if name != "queue"}

    def snapshot(self) -> dict[str, Any]:
        """Every key of the prefix: what it holds, and whether it has a TTL."""
        found = self.redis("KEYS", f"{self.keys.prefix}:*")
        return {key.decode(): (self._content(key), self.ttl(key) >= 0) for key in sorted(found)}

    def _content(self, key: bytes) -> Any:
        kind = self.redis("TYPE", key)
        if kind == b"stream":
            return self._stream_content(key)
        commands = {
            b"hash": ("HGETALL", key),
            b"string": ("GET", key),
            b"list": ("LRANGE", key, 0, -1),
            b"zset": ("ZRANGE", key, 0, -1, "WITHSCORES"),
            b"set": ("SMEMBERS", key),
        }
        return self.redis(*commands[kind])

    def _stream_content(self, key: bytes) -> Any:
        entries = self.redis("XRANGE", key, "-", "+")
        if not self.redis("XINFO", "GROUPS", key):
            return entries, None
        pending = self.redis("XPENDING", key, "workers", "-", "+", 1000)
        return entries, [(entry, consumer) for entry, consumer, *_ in pending]


def _named(flat: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def until(what: str, holds: Callable[[], Any], limit_s: float = 5) -> Any:
    """Wait until something holds; milliseconds of Redis time have to pass by themselves."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.001)
    raise AssertionError(f"not within {limit_s} s: {what}")
