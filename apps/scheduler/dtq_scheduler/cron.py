"""Fires recurring schedules: submits their tasks, each slot once, whatever dies on the way.

One script submits the tasks of a slot and moves the schedule on, if it still stands at that slot.
So a scheduler that was frozen, or two that lead at once, fire nothing twice; one that dies leaves
the slot to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from dtq_core import reads
from dtq_core.calls import Calls
from dtq_core.cron import (
    MAX_MADE_UP,
    CronSchedule,
    Misfire,
    Overlap,
    decode_schedule,
    next_slot,
    slots_between,
)
from dtq_core.errors import CorruptDataError, InputError, RedisFullError
from dtq_core.failpoints import reach
from dtq_core.firing import submission_of
from dtq_core.keyspace import Keyspace
from dtq_core.outage import Outage
from dtq_core.scripts import Code
from dtq_core.store import AsyncStore

_log = structlog.get_logger("dtq.cron")

_AT_ONCE = 100
_GOOD = frozenset({Code.OK, Code.AGAIN, Code.DUPLICATE})


class Cron:
    """Fires in one partition."""

    def __init__(self, store: AsyncStore, keys: Keyspace, calls: Calls) -> None:
        """Set up with a store, and the keys and calls of the partition."""
        self._store = store
        self._keys = keys
        self._calls = calls
        self._outage = Outage(_log, "nothing recurs", "recurring tasks are submitted again")
        self._grace_ms = int(store.settings.misfire_grace * 1000)

    async def fire_due(self) -> float:
        """Fire what is due, up to a hundred schedules.

        Returns:
            Seconds until the next slot: 0 where more are due, infinity where there is none.

        Raises:
            RedisError: if Redis cannot do it.
        """
        now_ms = await self._store.read(reads.now_ms(), retry_s=0)
        due = await self._store.read(reads.due_names(self._keys, now_ms, _AT_ONCE), retry_s=0)
        try:
            await self._fire_all(due, now_ms)
        except RedisFullError as error:  # new tasks are refused; what is there must go on
            return self._outage.met(error)
        self._outage.over()
        first = await self._store.read(reads.first_slot(self._keys), retry_s=0)
        return float("inf") if first is None else max(0.0, (first - now_ms) / 1000)

    async def _fire_all(self, due: Sequence[tuple[str, str]], now_ms: int) -> None:
        if not due:
            return
        names = [name for name, _ in due]
        found = await self._store.read(reads.definitions(self._keys, names), retry_s=0)
        for (name, slot), definition in zip(due, found, strict=True):
            await self._fire(name, slot, definition, now_ms)

    async def _fire(self, name: str, stored: str, definition: bytes | None, now_ms: int) -> None:
        slot = int(float(stored))
        try:
            schedule = decode_schedule(definition or b"")
            most = MAX_MADE_UP if schedule.misfire is Misfire.ALL else 1
            slots = slots_between(schedule.cron, schedule.tz, slot, now_ms, most)
            following = next_slot(schedule.cron, schedule.tz, max(slots))
            chosen = self._to_fire(schedule, slots, now_ms)
            store = self._store
            asked = [
                submission_of(store.partitions, store.settings, name, schedule, chosen_slot)
                for chosen_slot in chosen
            ]
        except (CorruptDataError, InputError) as error:
            _log.error("a schedule cannot be fired; it rests", schedule=name, error=str(error))
            slots, following, asked, alone = [slot], None, [], False
        else:
            alone = schedule.overlap is Overlap.SKIP
        call = self._calls.fire(None, name, (stored, max(slots), following), asked, alone=alone)
        reach("fire.before")
        codes = await self._store.run(call, retry_s=0)
        reach("fire.after")
        if not _GOOD.issuperset(codes):
            _log.error("a slot could not be submitted; it is over", schedule=name, slot_ms=slot)

    def _to_fire(self, schedule: CronSchedule, slots: list[int], now_ms: int) -> list[int]:
        """Which of the slots that have come are submitted; one that is just late is not missed."""
        match schedule.misfire:
            case Misfire.ALL:
                return slots
            case Misfire.ONCE:
                return slots[-1:]
            case Misfire.SKIP:
                return [slot for slot in slots[-1:] if now_ms - slot <= self._grace_ms]
