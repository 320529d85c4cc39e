"""The lease keeper: says that this worker lives, and renews what it holds.

It has a thread and a connection of its own, so that a handler that blocks the loop loses nothing.
It is the last part of a worker to stop.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog

from dtq_core.calls import Arg, Calls, batches
from dtq_core.clock import mono_s, wall_ms
from dtq_core.errors import DtqError, InvalidNameError, RedisFullError
from dtq_core.failpoints import reach
from dtq_core.limits import RENEWALS_PER_VISIBILITY
from dtq_core.outage import Outage
from dtq_core.scripts import Code
from dtq_core.settings import Settings
from dtq_core.store import Store
from dtq_worker.held import Held, Stop

_log = structlog.get_logger("dtq.leases")

_SHORTEST_TICK_S = 0.05
_LONGEST_TICK_S = 0.5
_STOP_S = 1.0
_GIVEN_BACK_MS = 365 * 86_400_000
"""Scripts give an entry that was given back a longer idle time than this."""
_SHOWN_RUNNING = 100
_SHOWN_LOST = 5
_encoder = msgspec.json.Encoder()


class LeaseKeeper:
    """Knows every claim in hand, and keeps its lease."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        worker: str,
        queues: Sequence[str],
        names: Sequence[str],
        interrupt: Callable[[Held, Stop], None],
        on_broken: Callable[[Exception], None],
    ) -> None:
        """Set up; :meth:`start` begins.

        Args:
            settings: of this process.
            url: the server.
            worker: this worker's id.
            queues: what it serves.
            names: the tasks that it knows.
            interrupt: called from the keeper's thread for a claim that is to stop.
            on_broken: called from there when the keeper itself cannot go on.
        """
        self._store = Store(settings, url)
        self._worker = worker
        self._interrupt = interrupt
        self._on_broken = on_broken
        self._visibility_ms = int(settings.visibility_timeout * 1000)
        self._renew_after_s = settings.visibility_timeout / RENEWALS_PER_VISIBILITY
        self._tick_s = min(_LONGEST_TICK_S, max(_SHORTEST_TICK_S, self._renew_after_s / 3))
        self._lock = threading.Lock()
        self._held: dict[tuple[str, int], Held] = {}
        self._disowned: set[str] = set()
        self._cancels = [0] * len(self._store.calls)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dtq-leases", daemon=True)
        self._fleet_visibility_ms = self._visibility_ms
        self._renewed_s = mono_s()
        self._trusted_from_s = 0.0
        self._description: dict[str, Arg] = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started_ms": wall_ms(),
            "concurrency": settings.concurrency,
            "queues": _encoder.encode(list(queues)),
            "tasks": _encoder.encode(list(names)),
        }

    @property
    def reclaim_idle_ms(self) -> int:
        """How long an entry must have gone unrenewed for this worker to take it.

        After a break (this process was frozen, or Redis was away) only what was given back is
        taken: the others must first have had the time to renew what they hold.
        """
        now = mono_s()
        broken = now - self._renewed_s >= self._renew_after_s * 2
        return _GIVEN_BACK_MS if broken or now < self._trusted_from_s else self._fleet_visibility_ms

    def start(self) -> None:
        """Say that this worker lives, blocking, and begin to renew.

        Before it takes anything it is thus known, and knows the visibility timeout of others.

        Raises:
            RedisError: if Redis cannot be told; nothing has begun then.
            InvalidNameError: if a worker of this name lives: each would adopt the other's tasks.
        """
        keys = self._store.partitions.all[0]
        if self._store.link.raw("EXISTS", keys.worker(self._worker)):
            raise InvalidNameError(f"a worker named {self._worker} lives already: names are unique")
        self._beat()
        self._renewed_s = mono_s()
        self._thread.start()

    def add(self, held: Sequence[Held]) -> None:
        """Keep the leases of new claims."""
        with self._lock:
            for item in held:
                self._held[item.key] = item
                self._disowned.discard(item.claim.entry)

    def forget(self, held: Held) -> None:
        """Let go of a claim whose outcome is stored, or whose lease is lost."""
        with self._lock:
            self._held.pop(held.key, None)

    def disown(self, held: Held) -> None:
        """Let go of a claim whose outcome cannot be stored: its entry is left to the reaper."""
        with self._lock:
            self._held.pop(held.key, None)
            self._disowned.add(held.claim.entry)

    def known_entries(self) -> list[str]:
        """The entries that this worker was given and knows of."""
        with self._lock:
            return [*(item.claim.entry for item in self._held.values()), *self._disowned]

    def all(self) -> list[Held]:
        """Every claim in hand."""
        with self._lock:
            return list(self._held.values())

    def verify(self, held: Sequence[Held]) -> list[Held]:
        """Renew at once, blocking, and return those whose lease is still current.

        Raises:
            RedisError: if Redis cannot say.
        """
        return [item for item, code in self._renew(held) if code is Code.OK]

    def stop(self) -> None:
        """Stop renewing, and close the connection unless Redis still keeps the thread waiting."""
        self._stopping.set()
        self._thread.join(_STOP_S)
        if not self._thread.is_alive():
            self._store.close()

    def _run(self) -> None:
        outage = Outage(_log, "leases cannot be renewed", "leases are renewed again")
        while True:
            try:
                self._tick()
            except DtqError as error:
                outage.met(error)
            except Exception as error:  # a worker that cannot renew must not go on
                self._on_broken(error)
                return
            else:
                outage.over()
            if self._stopping.wait(self._tick_s):
                return

    def _tick(self) -> None:
        try:
            asked = self._beat()
        except RedisFullError:  # a heartbeat needs memory, a renewal needs none
            asked = False
        now = mono_s()
        due = [
            item
            for item in self.all()
            if asked
            or now - item.renewed_s >= self._renew_after_s - self._tick_s
            or item.has_progress
        ]
        lost: list[str] = []
        for item, code in self._renew(due):
            if code is Code.CANCEL:
                self._interrupt(item, Stop.CANCEL)
            elif code in {Code.LOST, Code.UNKNOWN}:
                self.forget(item)
                self._interrupt(item, Stop.LOST)
                lost.append(item.claim.task_id)
        if lost:
            _log.warning(
                "leases were lost, their handlers are told to stop",
                count=len(lost),
                task_ids=" ".join(lost[:_SHOWN_LOST]),
            )
        now = mono_s()
        if now - self._renewed_s > self._renew_after_s:
            self._trusted_from_s = now + self._fleet_visibility_ms / 1000
        self._renewed_s = now

    def _beat(self) -> bool:
        """Say that this worker lives; return whether it was asked to cancel something."""
        asked = False
        held = self.all()
        description = {
            **self._description,
            "running": _encoder.encode(list(map(_shown, held[:_SHOWN_RUNNING]))),
            "running_count": len(held),
        }
        longest = self._visibility_ms
        for index, calls in enumerate(self._store.calls):
            call = calls.beat(
                self._worker, 3 * self._visibility_ms, self._visibility_ms, description
            )
            reach("beat.before")
            beat = self._store.run(call, retry_s=0)
            reach("beat.after")
            asked = asked or beat.cancels != self._cancels[index]
            self._cancels[index] = beat.cancels
            longest = max(longest, beat.visibility_ms)
        self._fleet_visibility_ms = longest
        return asked

    def _renew(self, items: Sequence[Held]) -> list[tuple[Held, Code]]:
        answered: list[tuple[Held, Code]] = []
        for calls, group in self._by_partition(items):
            for batch in batches(group):
                sent_s = mono_s()
                leases = [(*item.key, item.take_progress()) for item in batch]
                reach("renew.before")
                codes = self._store.run(calls.renew(self._worker, leases), retry_s=0)
                reach("renew.after")
                for item, code in zip(batch, codes, strict=True):
                    item.renewed_s = sent_s
                    item.progress = b""
                    answered.append((item, code))
        return answered

    def _by_partition(self, items: Sequence[Held]) -> list[tuple[Calls, list[Held]]]:
        groups: dict[int, list[Held]] = {}
        for item in items:
            index = self._store.keys_of(item.claim.task_id).index
            groups.setdefault(index, []).append(item)
        return [(self._store.calls[index], group) for index, group in groups.items()]


def _shown(item: Held) -> dict[str, Any]:
    """What a worker says of a task that it runs."""
    return {"id": item.claim.task_id, "name": item.name, "since_ms": item.claim.started_ms}
