"""A small table to set tasks on: bring one into any state, call any script, look at every key."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from dtq_core import reads
from dtq_core.audit import Operation
from dtq_core.calls import (
    Abandoned,
    Beat,
    Call,
    Ended,
    Lead,
    Opened,
    OperationRun,
    Promoted,
    Submitted,
    Suspects,
    Taken,
)
from dtq_core.decide import Finish, Release
from dtq_core.keyspace import bands_of
from dtq_core.limits import Band
from dtq_core.outcome import ErrorInfo
from dtq_core.record import Attempt, Claim, Options, Submission, SubmissionForm
from dtq_core.scripts import Code
from dtq_core.states import Status
from dtq_core.store import Store
from dtq_core.verify import Mend, Thing, Verified
from support.clock import Clock
from support.keys import names_of

T = TypeVar("T")

QUEUE = "q"
PAYLOAD = b"[[1],{}]"
ERROR = ErrorInfo("ValueError", "no")
LONG_MS = 600_000


class Table:
    """One partition and everything that acts on it."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self.store = store
        self.clock = clock
        self.keys = store.partitions.all[0]
        self.calls = store.calls[0]
        self.bands = bands_of([QUEUE])
        self._cursors = [b"0-0"] * len(self.bands)
        self._operation_id = store.partitions.new_id()

    def run(self, call: Call[T]) -> T:
        """Run a call, under the clock of the test where it has one."""
        if self.clock is not None:
            call = replace(call, script=self.clock.under(call.script))
        return self.store.run(call)

    # what clients do

    def submission(
        self, payload: bytes = PAYLOAD, task_id: str | None = None, **options: Any
    ) -> Submission:
        made = Options(**{"queue": QUEUE, **options})
        new_id = task_id or self.store.partitions.new_id()
        form = SubmissionForm("name", made, self.store.settings)
        return form.submission(new_id, payload)

    def submit_all(self, *submissions: Submission) -> list[Submitted]:
        return self.run(self.calls.submit(submissions))

    def submit(self, payload: bytes = PAYLOAD, **options: Any) -> str:
        return self.submit_all(self.submission(payload, **options))[0].task_id

    def cancel(self, *task_ids: str) -> list[Ended]:
        return self.run(self.calls.cancel(task_ids, "because"))

    def watch(self, *task_ids: str) -> list[Ended]:
        return self.run(self.calls.watch(task_ids))

    # what workers do

    def take(self, worker: str = "w1", slots: int = 10) -> Taken:
        return self.run(self.calls.claim(worker, slots, self.bands))

    def claim(self, worker: str = "w1") -> Claim:
        taken = self.take(worker, 1)
        assert len(taken.claims) == 1, taken
        return taken.claims[0]

    def reclaim(
        self,
        worker: str = "w2",
        slots: int = 10,
        idle_ms: int = LONG_MS,
        suspects: Suspects = Suspects.TAKE,
    ) -> Taken:
        call = self.calls.reclaim(worker, slots, idle_ms, self.bands, self._cursors, suspects)
        taken = self.run(call)
        self._cursors = taken.cursors
        return taken

    def adopt(self, worker: str = "w1", *known: Claim) -> Taken:
        entries = [claim.entry for claim in known]
        return self.run(self.calls.adopt(worker, entries, self.bands))

    def finish(self, *finishes: Finish) -> list[Ended]:
        return self.run(self.calls.finish(finishes))

    def succeed(self, claim: Claim) -> Ended:
        return self.finish(Finish.succeeded(claim, b'"done"', LONG_MS))[0]

    def retry(self, claim: Claim, delay_ms: int = 0) -> Ended:
        return self.finish(Finish.retry(claim, ERROR, delay_ms))[0]

    def fail(self, claim: Claim) -> Ended:
        return self.finish(Finish.failed(claim, ERROR))[0]

    def release(self, claim: Claim, delay_ms: int = 0) -> Ended:
        what = Release.later(claim, "later", delay_ms) if delay_ms else Release.now(claim, "now")
        return self.run(self.calls.release([what]))[0]

    def renew(self, claim: Claim, worker: str = "w1", progress: bytes = b"") -> Code:
        lease = (claim.task_id, claim.lease, progress)
        return self.run(self.calls.renew(worker, [lease]))[0]

    def op_begin(
        self, claim: Claim, nonce: str = "n1", name: str = "charge", *, rerun: bool = False
    ) -> Opened:
        run = OperationRun(claim.task_id, claim.lease, name, nonce)
        return self.run(self.calls.op_begin(run, LONG_MS, rerun=rerun))

    def op_end(
        self,
        claim: Claim,
        result: bytes | None = b"1",
        nonce: str = "n1",
        name: str = "charge",
    ) -> Code:
        run = OperationRun(claim.task_id, claim.lease, name, nonce)
        return self.run(self.calls.op_end(run, result, LONG_MS))

    def abandon(self, worker: str = "w1") -> Abandoned:
        return self.run(self.calls.abandon(worker, self.bands))

    def beat(self, worker: str = "w1", visibility_ms: int = 1000) -> Beat:
        return self.run(self.calls.beat(worker, LONG_MS, visibility_ms, {"host": "h"}))

    # what the scheduler does

    def promote(self, schedule: str) -> Promoted:
        return self.run(self.calls.promote(schedule))

    def expire(self) -> Promoted:
        return self.run(self.calls.expire())

    def lead(self, scheduler: str, lease_ms: int = LONG_MS) -> Lead:
        return self.run(self.calls.lead(scheduler, lease_ms))

    # what operators do

    def operation(self, action: str = "test") -> Operation:
        """The same one each time it is asked for; for another, another table."""
        return Operation(self._operation_id, action, "os:ann@here", "because", "queue=q")

    def pause(self, *queues: str, paused: bool = True) -> list[bool]:
        act = self.operation("queue.pause" if paused else "queue.resume")
        return self.run(self.calls.pause(act, queues or (QUEUE,), paused=paused))

    SLOT = 1_000

    def key_put(self, before: bytes = b"", text: bytes = b"a key") -> Code:
        return self.run(self.calls.key_put(self.operation(), "shop", before, text))

    def cron_put(self, name: str = "nightly", operation: Operation | None = None) -> Code:
        """Store a schedule whose first slot has come."""
        return self.run(self.calls.cron_put(operation, name, b"a definition", self.SLOT))

    def fire(self, task_id: str | None = None, slot: int = SLOT, **options: Any) -> list[Code]:
        """Fire a slot of the schedule, with one task."""
        asked = self.submission(task_id=task_id, **options)
        return self.run(self.calls.fire(None, "nightly", (slot, slot, slot + 60_000), [asked]))

    def requeue(self, *task_ids: str) -> list[Ended]:
        letters = [("", task_id) for task_id in task_ids]
        return self.run(self.calls.requeue(self.operation("dlq.requeue"), letters))

    def purge(self, *task_ids: str, queue: str = QUEUE, band: str = "") -> list[Code]:
        act = self.operation("queue.purge")
        return self.run(self.calls.purge(act, queue, band, task_ids))

    def discard(self, *task_ids: str, entry: str = "") -> list[Code]:
        letters = [(entry, task_id) for task_id in task_ids]
        return self.run(self.calls.discard(self.operation("dlq.purge"), letters))

    def verify(self, *task_ids: str, mend: Mend = Mend.ALL) -> Verified:
        things = [Thing("task", task_id) for task_id in task_ids]
        return self.run(self.calls.verify(self.operation(), mend, things))

    def recount(self) -> bool:
        """Count a status of which there are none, and which nobody has counted."""
        return self.run(self.calls.recount(self.operation(), "empty", [("QUEUED", "", 0)]))

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
        others = {"absorbed": info.absorbed, "reclaimed": info.reclaimed, "released": info.released}
        return {**info.tasks, **others}

    def snapshot(self) -> dict[str, Any]:
        """Every key, the prefix left out: what it holds, and whether it has a TTL."""
        start = f"{self.keys.prefix}:"
        return {
            name.removeprefix(start): (self._content(name), self.ttl(name) >= 0)
            for name in names_of(self.store, self.keys)
        }

    def changed(self, before: dict[str, Any], task_id: str) -> set[str]:
        """Which keys differ from a snapshot, each by the first part of its name."""
        after = self.snapshot()
        names = {name for name in before | after if before.get(name) != after.get(name)}
        others = {name for name in names if "task:" in name and not name.endswith(task_id)}
        assert not others, f"another task's: {others}"
        return {name.partition(":")[0] for name in names}

    def _content(self, key: str) -> Any:
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

    def _stream_content(self, key: str) -> Any:
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
