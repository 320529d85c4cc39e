"""The scheduler: in each partition a candidate that, while it leads, promotes and sweeps."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets

import structlog

from dtq_core.calls import Calls
from dtq_core.errors import DtqError
from dtq_core.keyspace import Keyspace
from dtq_core.outage import Outage
from dtq_core.settings import Settings
from dtq_core.store import AsyncStore
from dtq_scheduler.alarm import Alarm
from dtq_scheduler.cron import Cron
from dtq_scheduler.expirer import Expirer
from dtq_scheduler.leader import Leader
from dtq_scheduler.promoter import Promoter
from dtq_scheduler.sweeper import Sweeper
from dtq_scheduler.verifier import Verifier

_log = structlog.get_logger("dtq.scheduler")


class Scheduler:
    """Runs any number of times in a deployment; one at a time leads a partition."""

    def __init__(self, settings: Settings, url: str | None = None) -> None:
        """Set up; nothing is sent before :meth:`run`.

        Args:
            settings: of this process.
            url: the server; found from the settings unless given.
        """
        self._settings = settings
        self._store = AsyncStore(settings, url)
        self._name = f"scheduler-{os.getpid()}-{secrets.token_hex(4)}"

    async def run(self) -> None:
        """Schedule until cancelled."""
        pairs = zip(self._store.partitions.all, self._store.calls, strict=True)
        try:
            async with asyncio.TaskGroup() as group:
                for keys, calls in pairs:
                    leader = Leader(self._store, calls, self._name, self._settings.leader_lease)
                    group.create_task(self._keep_time(keys, calls, leader), name="dtq-scheduler")
                    group.create_task(self._keep_house(keys, calls, leader), name="dtq-sweeper")
        finally:
            await self._store.close()

    async def _keep_time(self, keys: Keyspace, calls: Calls, leader: Leader) -> None:
        """Lead where nobody does, and while leading move what is due, when it is due."""
        promoter = Promoter(self._store, calls)
        expirer = Expirer(self._store, calls)
        cron = Cron(self._store, keys, calls)
        alarm = Alarm(self._store, keys.due)
        outage = Outage(_log, "nothing can be scheduled", "tasks are scheduled again")
        try:
            while True:
                try:
                    await self._pass(leader, promoter, expirer, cron, alarm)
                except DtqError as error:
                    await asyncio.sleep(outage.met(error))
                else:
                    outage.over()
        finally:
            await alarm.close()
            with contextlib.suppress(DtqError):
                await leader.resign()

    async def _pass(
        self, leader: Leader, promoter: Promoter, expirer: Expirer, cron: Cron, alarm: Alarm
    ) -> None:
        """Do what is due now, and sleep until the next look."""
        tick = self._settings.scheduler_tick
        if not await leader.leads():
            await alarm.close()
            await asyncio.sleep(tick)
            return
        due = min(await promoter.promote_due(), await expirer.expire_due(), await cron.fire_due())
        await alarm.sleep(min(tick, due, leader.asks_in_s))

    async def _keep_house(self, keys: Keyspace, calls: Calls, leader: Leader) -> None:
        """While leading: what has time, and must not keep anything due from its time."""
        sweeper = Sweeper(self._store, keys, calls)
        verifier = Verifier(self._store, keys, calls, self._settings.verify_interval)
        outage = Outage(_log, "nothing can be cleared away", "what is dead is cleared away again")
        while True:
            rest = self._settings.scheduler_tick
            try:
                if leader.trusted:
                    await sweeper.clear_workers()
                    await verifier.step()
            except DtqError as error:
                rest = outage.met(error)
            else:
                outage.over()
            await asyncio.sleep(rest)
