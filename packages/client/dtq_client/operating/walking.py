"""A walk over everything that one partition stores, in bounded steps."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from dtq_client.queries.walks import entries_of, members_of, scanned
from dtq_core import reads
from dtq_core.audit import Operation
from dtq_core.calls import Calls, batches
from dtq_core.errors import CorruptDataError
from dtq_core.keyspace import GROUP, OVERDUE, SUSPECTS, Keyspace, bands_of, fixed_keys
from dtq_core.limits import Band, is_name
from dtq_core.states import Status
from dtq_core.store import Store
from dtq_core.verify import Checked, Finding, Kind, Mend, Thing

_THINGS_PER_CALL = 100
_MOVES = "moves"
"""The counter that only grows: while it stands still, nothing moves in the queue."""
_STREAM = re.compile(rf"[A-Za-z0-9_.-]{{1,100}}:({'|'.join(Band)})")
_GONE_AFTER_MS = 60_000
"""A consumer without a heartbeat that was idle for less may belong to a worker that begins."""


class Walk:
    """Over one partition."""

    def __init__(
        self,
        store: Store,
        keys: Keyspace,
        calls: Calls,
        act: Operation,
        mend: Mend,
        progress: Callable[[int], None],
    ) -> None:
        """Set up.

        Args:
            store: to call through.
            keys: of the partition.
            calls: of the partition.
            act: what the audit log is told of what is mended.
            mend: what may be mended.
            progress: told now and then how many keys were seen.
        """
        self._store = store
        self._keys = keys
        self._calls = calls
        self._act = act
        self._mend = mend
        self._progress = progress
        self._queues: set[str] = set()
        self._statuses: dict[bytes, tuple[str, str]] = {}
        self.keys_seen = 0

    @property
    def tasks_seen(self) -> int:
        """How many sound records were looked at."""
        return len(self._statuses)

    def findings(self) -> Iterator[Finding]:
        """Walk, and return each thing that disagrees, as it is found."""
        known = self._store.read(reads.queue_names(self._keys))
        before = {queue: self._counters(queue) for queue in known}  # with the number of moves
        yield from self._all_keys()
        self._queues.update(known)
        yield from self._look(Thing("queue", queue) for queue in sorted(self._queues))
        yield from self._look(self._entries())
        yield from self._look(self._members())
        yield from self._look(self._letters())
        yield from self._consumers()
        for queue, counters in before.items():
            yield from self._recount(queue, counters)

    def _look(self, things: Iterable[Thing]) -> Iterator[Finding]:
        for batch in batches(things, _THINGS_PER_CALL):
            yield from self._ask(batch)

    def _ask(self, things: Sequence[Thing]) -> list[Finding]:
        found = self._store.run(self._calls.verify(self._act, self._mend, things))
        for task in found.tasks:
            self._note(task)
        return found.findings

    def _note(self, task: Checked) -> None:
        self._statuses[bytes.fromhex(task.task_id)] = (task.queue, task.status)

    def _all_keys(self) -> Iterator[Finding]:
        fixed = {name.removeprefix(f"{self._keys.prefix}:") for name in fixed_keys(self._keys)}
        for page in scanned(self._store, lambda at: reads.scan_all(self._keys, at)):
            foreign: list[Finding] = []
            things = [
                thing
                for name in page.names
                if name not in fixed
                for thing in self._things_of(name, foreign)
            ]
            yield from self._look(things)
            yield from foreign
            self.keys_seen += len(page.names)
            self._progress(self.keys_seen)

    def _things_of(self, name: str, foreign: list[Finding]) -> Iterator[Thing]:
        """What there is to look at because of a key; one that is none of ours is noted."""
        kind, _, rest = name.partition(":")
        match kind:
            case "task" | "attempts" | "result" if _is_id(rest):
                yield Thing(kind, rest)
            case "idem":
                yield Thing("idempotency", rest)
            case "stream" if _STREAM.fullmatch(rest):
                self._queues.add(rest.rpartition(":")[0])
            case "stats" if is_name(rest):
                self._queues.add(rest)
            case "wake" | "worker" | "meta":
                pass
            case "op" if _is_operation(rest):
                pass
            case _:
                foreign.append(Finding(Kind.FOREIGN, f"{self._keys.prefix}:{name}", mended=False))

    def _entries(self) -> Iterator[Thing]:
        for queue, band in bands_of(sorted(self._queues)):
            key = self._keys.stream(queue, band)
            for entry, _ in self._walk_stream(key):
                yield Thing("entry", f"{queue}:{band}", entry)

    def _walk_stream(self, key: str) -> Iterator[tuple[str, str]]:
        if self._store.link.command("TYPE", key) == b"stream":
            yield from chain.from_iterable(entries_of(self._store, key))

    def _members(self) -> Iterator[Thing]:
        keys = self._keys
        schedules = {"delay": keys.delay_schedule, "retry": keys.retry_schedule}
        for name, key in {**schedules, "expiry": keys.expiry}.items():
            for members in members_of(self._store, key):
                yield from (Thing("member", name, member) for member in members)

    def _letters(self) -> Iterator[Thing]:
        for entry, task_id in self._walk_stream(self._keys.dlq):
            yield Thing("letter", entry, task_id)

    def _consumers(self) -> Iterator[Finding]:
        """Consumers without a heartbeat; the leading scheduler clears away those it knows of."""
        gone: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for queue, band in bands_of(sorted(self._queues)):
            for worker in self._silent(self._keys.stream(queue, band)):
                gone[worker].add((queue, band))
        for worker, bands in sorted(gone.items()):
            if self._store.link.command("EXISTS", self._keys.worker(worker)):
                continue
            if self._mend is Mend.ALL:
                call = self._calls.abandon(worker, sorted(bands), seen_dead=False)
                while (done := self._store.run(call)).left and done.moved:
                    pass
            yield Finding(Kind.WORKER_GONE, worker, self._mend is Mend.ALL)

    def _silent(self, stream: str) -> list[str]:
        """The consumers of a stream that have been idle for long."""
        command = self._store.link.command
        if command("TYPE", stream) != b"stream":
            return []
        groups = {group["name"] for group in command("XINFO GROUPS", stream)}
        rows = command("XINFO CONSUMERS", stream, GROUP) if GROUP.encode() in groups else []
        names = [row["name"].decode() for row in rows if row["idle"] > _GONE_AFTER_MS]
        return [name for name in names if name not in {OVERDUE, SUSPECTS}]

    def _counters(self, queue: str) -> dict[str, str] | None:
        """The counters of a queue; None where they are none, which is told elsewhere."""
        try:
            return self._store.read(reads.counters(self._keys, queue))
        except CorruptDataError:
            return None

    def _recount(self, queue: str, before: dict[str, str] | None) -> Iterator[Finding]:
        """Compare the counters of a queue in which nothing has moved since the walk began."""
        there = Counter(status for found, status in self._statuses.values() if found == queue)
        after = self._counters(queue)
        if before is None or after != before:
            return
        right = {status: _right(status, before, there[status]) for status in Status}
        wrong = [status for status in Status if before.get(status, "0") != str(right[status])]
        if not wrong:
            return
        moves = before.get(_MOVES, "")
        rows = [(_MOVES, moves, int(moves) if moves.isdigit() else 0)]
        rows += [(str(status), before.get(status, ""), right[status]) for status in Status]
        mended = self._mend is Mend.ALL and self._store.run(
            self._calls.recount(self._act, queue, rows)
        )
        for status in wrong:
            yield Finding(Kind.COUNTER_WRONG, f"{queue} {status}", mended)


def _right(status: Status, before: dict[str, str], there: int) -> int:
    """Of tasks that have ended, the counter says how many ever did: at least those still there."""
    text = before.get(status, "0")
    counted = int(text) if text.isdigit() else 0
    return max(counted, there) if status.terminal else there


def _is_operation(text: str) -> bool:
    task_id, _, name = text.partition(":")
    return _is_id(task_id) and is_name(name)


def _is_id(text: str) -> bool:
    return len(text) == 32 and all(char in "0123456789abcdef" for char in text)
