"""Fires recurring schedules: submits their tasks, each slot once, whatever dies on the way.

One script submits the tasks of a slot and moves the schedule on, if it still stands at that slot.
So a scheduler that was frozen, or two that lead at once, fire nothing twice; one that dies leaves
the slot to the next.
"""

from __future__ import annotations

import structlog

from dtq_core import reads
from dtq_core.calls import Calls
from dtq_core.cron import CronSchedule, Misfire, Overlap, decode_schedule, next_slot, slots_between
from dtq_core.errors import CorruptDataError, InputError
from dtq_core.failpoints import reach
from dtq_core.firing import submission_of
from dtq_core.keyspace import Keyspace
from dtq_core.record import Submission
from dtq_core.store import AsyncStore

_log = structlog.get_logger("dtq.cron")

_AT_ONCE = 100


class Cron:
    """Fires in one partition."""

    def __init__(self, store: AsyncStore, keys: Keyspace, calls: Calls) -> None:
        """Set up with a store, and the keys and calls of the partition."""
        self._store = store
        self._keys = keys
        self._calls = calls
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
        if due:
            names = [name for name, _ in due]
            found = await self._store.read(reads.definitions(self._keys, names), retry_s=0)
            for (name, slot), definition in zip(due, found, strict=True):
                await self._fire(name, slot, definition, now_ms)
        first = await self._store.read(reads.first_slot(self._keys), retry_s=0)
        return float("inf") if first is None else max(0.0, (first - now_ms) / 1000)

    async def _fire(self, name: str, slot: int, definition: bytes | None, now_ms: int) -> None:
        try:
            schedule = decode_schedule(definition or b"")
            slots = slots_between(schedule.cron, schedule.tz, slot, now_ms)
            following = next_slot(schedule.cron, schedule.tz, max(slots))
            chosen = self._to_fire(schedule, slots, now_ms)
            asked = [self._submission(name, schedule, chosen_slot) for chosen_slot in chosen]
        except (CorruptDataError, InputError) as error:
            _log.error("a schedule cannot be fired; it rests", schedule=name, error=str(error))
            slots, following, asked, alone = [slot], None, [], False
        else:
            alone = schedule.overlap is Overlap.SKIP
        call = self._calls.fire(None, name, (slot, max(slots), following), asked, alone=alone)
        reach("fire.before")
        await self._store.run(call, retry_s=0)
        reach("fire.after")

    def _to_fire(self, schedule: CronSchedule, slots: list[int], now_ms: int) -> list[int]:
        """Which of the slots that have come are submitted; one that is just late is not missed."""
        match schedule.misfire:
            case Misfire.ALL:
                return slots
            case Misfire.ONCE:
                return slots[-1:]
            case Misfire.SKIP:
                return [slot for slot in slots[-1:] if now_ms - slot <= self._grace_ms]

    def _submission(self, name: str, schedule: CronSchedule, slot: int) -> Submission:
        return submission_of(self._store.partitions, self._store.settings, name, schedule, slot)
