"""A worker: its parts, put together, started and stopped in order.

:class:`Worker` is what a child process runs, and what a program may run inside its own event loop
(tests, an ASGI lifespan).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog

from dtq_core.calls import Suspects
from dtq_core.cancelling import cancel
from dtq_core.clock import mono_s
from dtq_core.errors import DtqError, InvalidNameError
from dtq_core.failpoints import reach
from dtq_core.keyspace import OVERDUE, SUSPECTS
from dtq_core.limits import check_name
from dtq_core.outcome import GivenBack
from dtq_core.record import DEFAULT_QUEUE
from dtq_core.settings import Settings, load
from dtq_core.store import AsyncStore
from dtq_scheduler import Scheduler
from dtq_tasks import Registry, default_registry
from dtq_worker.bands import BandOrder
from dtq_worker.claimer import Claimer, block_s
from dtq_worker.declaring import declare_schedules
from dtq_worker.executor import STUCK_AFTER_S, Executor
from dtq_worker.finisher import Finisher
from dtq_worker.held import Held, Stop
from dtq_worker.identity import new_worker_id
from dtq_worker.intake import Intake
from dtq_worker.isolator import Isolator
from dtq_worker.leases import LeaseKeeper
from dtq_worker.measurer import Measurer
from dtq_worker.operations import Operations
from dtq_worker.reaper import Reaper
from dtq_worker.slots import Slots
from dtq_worker.tracer import Tracer

_log = structlog.get_logger("dtq.worker")

_FINISH_GRACE_S = 2.0
"""How long a stopping worker tries to store its last outcomes once its grace time is over."""
_CALL_GRACE_S = 1.0
"""How long it waits for any other call to Redis."""
_LOOK_AGAIN_S = 0.5
_HURRIED_S = 0.2
"""How long it waits for anything once it was told to hurry."""


class Worker:
    """Runs tasks of some queues, in the event loop that calls :meth:`run`."""

    def __init__(
        self,
        registry: Registry = default_registry,
        queues: Sequence[str] | None = None,
        *,
        worker_id: str | None = None,
        scheduler: bool = True,
        allow_eviction: bool = False,
        supervised: bool = False,
        isolating: bool = False,
        on_suspects: Callable[[], None] | None = None,
        settings: Settings | None = None,
        **overrides: Any,
    ) -> None:
        """Set up a worker; nothing is sent before :meth:`run`.

        Args:
            registry: the handlers.
            queues: what to serve; unless given, the queues of the handlers and ``default``.
            worker_id: its name, which no other live worker has; made up unless given.
            scheduler: whether it also runs a scheduler candidate.
            allow_eviction: whether to work on a server that may throw tasks away.
            supervised: whether a supervisor starts this process again when it stops, as it then
                does once a handler does not let itself be stopped.
            isolating: whether it runs nothing but suspects, one at a time, and stops when none are
                left. A suspect is a task that was in two processes when they died, or in one with a
                single attempt left.
            on_suspects: told when there are suspects, which are then left for an isolating worker;
                unless given, this one runs them among the others.
            settings: of this process, loaded unless given.
            overrides: single settings by name.

        Raises:
            InputError: for a bad name or setting.
            RedisUnavailableError: when no server is named and none runs for this project.
        """
        self.settings = settings if settings is not None else load(overrides)
        self.id = _checked_id(worker_id or new_worker_id())
        self.queues = [check_name("queue name", q) for q in queues or served_queues(registry)]
        self._registry = registry
        self._eviction_matters = not allow_eviction
        self._supervised = supervised
        self._on_suspects = on_suspects
        self._suspects = Suspects.TAKE if on_suspects is None else Suspects.LEAVE
        if isolating:
            self._suspects = Suspects.ONLY
        self._store = AsyncStore(self.settings)
        self._waiter = AsyncStore(self.settings, self._store.url, block_s=block_s(self.settings))
        self._slots = Slots(1 if isolating else self.settings.concurrency)
        self._leases = LeaseKeeper(
            self.settings,
            self._store.url,
            self.id,
            self.queues,
            registry.names(),
            self._interrupt_from_thread,
            self._break_from_thread,
        )
        self._measurer = Measurer()
        self._finishers = [
            Finisher(self._store, calls, self._leases, self._measurer)
            for calls in self._store.calls
        ]
        self._operations = Operations(self._store, self.settings)
        self._executor = Executor(
            registry,
            self.settings,
            self._slots,
            self._finisher_of,
            self._operations.of,
            self._on_stuck,
            self._measurer,
            Tracer(self._store),
        )
        self._scheduler = Scheduler(self.settings, self._store.url) if scheduler else None
        self._intakes: list[Intake] = []
        self._claimers: list[Claimer] = []
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self.running = asyncio.Event()
        self._leases_broken: asyncio.Future[None]

    async def run(self) -> None:
        """Work until :meth:`stop` is called, then give back what is left.

        Raises:
            RedisUnfitError: if the server is too old, evicts, or is laid out otherwise.
            RedisUnavailableError: if it cannot be reached at the start.
        """
        self._loop = asyncio.get_running_loop()
        self._leases_broken = self._loop.create_future()
        await self._introduce()
        self._assemble()
        finishing = [asyncio.create_task(f.run(), name="dtq-finisher") for f in self._finishers]
        finishing.append(asyncio.create_task(self._measurer.run(self._store), name="dtq-measurer"))
        taking = self._start_taking()
        if self._scheduler is not None:
            taking.append(asyncio.create_task(self._scheduler.run(), name="dtq-scheduler"))
        self.running.set()
        _log.info("worker started", worker=self.id, queues=self.queues)
        try:
            await self._until_stopped([*taking, *finishing])
        finally:
            await self._shut_down(taking, finishing)

    def stop(self) -> None:
        """Stop in order; a second call gives everything back at once. On the loop's thread."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def retire(self) -> None:
        """Stop in order, unless it stops already; never a reason to hurry."""
        if not self.stopping:
            self.stop()

    @property
    def hurried(self) -> bool:
        """Whether it was told twice to stop."""
        return self._hurry.is_set()

    @property
    def executed(self) -> int:
        """How many attempts it has run to their end."""
        return self._executor.executed

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stop.is_set()

    async def _introduce(self) -> None:
        try:
            await self._store.check(eviction_matters=self._eviction_matters)
            await declare_schedules(self._store, self._registry)
            await asyncio.to_thread(self._leases.start)
        except BaseException:
            await self._store.close()
            raise

    def _assemble(self) -> None:
        for keys, calls in zip(self._store.partitions.all, self._store.calls, strict=True):
            order = BandOrder(self.queues, self.settings.band_order, random.Random())
            intake = Intake(
                self._store,
                calls,
                self.id,
                order,
                self._slots,
                self._leases,
                self._executor.start,
                self._suspects,
                self._on_suspects,
                self._measurer,
            )
            self._intakes.append(intake)
            self._claimers.append(
                Claimer(
                    self._waiter,
                    keys,
                    self.queues,
                    intake,
                    self._slots,
                    alone=len(self._store.calls) == 1,
                )
            )

    def _start_taking(self) -> list[asyncio.Task[None]]:
        if self._suspects is Suspects.ONLY:
            isolator = Isolator(self._intakes, self._slots, self.retire)
            return [asyncio.create_task(isolator.run(), name="dtq-isolator")]
        interval = self.settings.reaper_interval
        reapers = [Reaper(intake, interval, random.Random()) for intake in self._intakes]
        return [
            *(asyncio.create_task(c.run(), name="dtq-claimer") for c in self._claimers),
            *(asyncio.create_task(r.run(), name="dtq-reaper") for r in reapers),
        ]

    async def _until_stopped(self, parts: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the stop; a part that ends before is a bug, and ends the worker."""
        stopped: asyncio.Future[Any] = asyncio.create_task(self._stop.wait())
        watched: list[asyncio.Future[Any]] = [self._leases_broken, *parts]
        try:
            await asyncio.wait([stopped, *watched], return_when=asyncio.FIRST_COMPLETED)
            for part in watched:
                if part.done():
                    part.result()
        finally:
            stopped.cancel()

    async def _shut_down(
        self, taking: Sequence[asyncio.Task[None]], finishing: Sequence[asyncio.Task[None]]
    ) -> None:
        """Claim nothing more, wait, give back the rest, store the outcomes; renew to the last."""
        reach("shutdown.before")
        end_s = mono_s() + self.settings.shutdown_grace
        _log.info("worker stops", worker=self.id, running=len(self._leases.all()))
        for intake in self._intakes:
            intake.close()
        await self._wait(self._take_no_more())
        await cancel(*taking)
        await self._wait(self._adopt_unseen())
        self._give_back_unstarted()
        await self._wait(self._idle(), end_s - mono_s())
        await self._give_back()
        await self._wait(self._stored(), max(_FINISH_GRACE_S, end_s - mono_s()))
        await cancel(*finishing)
        await asyncio.to_thread(self._leases.stop)
        await self._wait(self._leave())
        await self._wait(self._measurer.tell(self._store))
        self._operations.close()
        self._executor.close()
        await self._waiter.close()
        await self._store.close()
        _log.info("worker stopped", worker=self.id)

    async def _wait(self, work: Coroutine[Any, Any, Any], limit_s: float = _CALL_GRACE_S) -> None:
        """Wait for some work, for a limited time; when told to hurry, only a moment more."""
        working = asyncio.create_task(work)
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait([working, hurry], timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if self.hurried:
            await asyncio.wait([working], timeout=_HURRIED_S)
        await cancel(working, hurry)

    async def _take_no_more(self) -> None:
        """Let the calls under way end."""
        for intake in self._intakes:
            await intake.quiet()

    async def _adopt_unseen(self) -> None:
        """Take up what came in a reply that was lost, to give it back."""
        for intake in self._intakes:
            with contextlib.suppress(DtqError):
                await intake.adopt_unseen()

    async def _stored(self) -> None:
        """Wait until every outcome is stored."""
        for finisher in self._finishers:
            await finisher.drained()

    async def _idle(self) -> None:
        """Wait until nothing runs any more."""
        while work := [held.work for held in self._running() if held.work is not None]:
            await asyncio.wait(work, timeout=_LOOK_AGAIN_S, return_when=asyncio.FIRST_COMPLETED)

    def _running(self) -> list[Held]:
        return [held for held in self._leases.all() if not held.reported]

    def _give_back_unstarted(self) -> None:
        """Release what came too late to be started."""
        for held in self._running():
            if held.work is None:
                self._executor.report(held, GivenBack("the worker stops"))

    async def _give_back(self) -> None:
        """Interrupt what still runs and release it."""
        for held in self._running():
            held.interrupt(Stop.SHUTDOWN)
        work = [held.work for held in self._running() if held.work and not held.in_thread]
        if work:
            await self._wait(asyncio.wait(work), STUCK_AFTER_S)
        for held in self._running():
            self._executor.report(held, GivenBack("the worker stops"))

    async def _leave(self) -> None:
        """Leave no consumer behind; what is still pending for this worker becomes overdue."""
        for claimer in self._claimers:
            await claimer.pass_on()
        with contextlib.suppress(DtqError):
            await self._store.abandon(self.id)

    def _finisher_of(self, task_id: str) -> Finisher:
        return self._finishers[self._store.keys_of(task_id).index]

    def _interrupt_from_thread(self, held: Held, stop: Stop) -> None:
        self._loop.call_soon_threadsafe(self._interrupt, held, stop)

    def _interrupt(self, held: Held, stop: Stop) -> None:
        if stop is Stop.LOST:
            self._measurer.lease_lost()
        held.interrupt(stop)

    def _break_from_thread(self, error: Exception) -> None:
        def fail() -> None:
            if not self._leases_broken.done():
                self._leases_broken.set_exception(error)

        self._loop.call_soon_threadsafe(fail)

    def _on_stuck(self, held: Held) -> None:
        _log.error("a handler does not stop; it keeps its slot", task_id=held.claim.task_id)
        if self._supervised:
            self.retire()


def _checked_id(worker_id: str) -> str:
    if worker_id in {OVERDUE, SUSPECTS}:
        raise InvalidNameError(f"worker name {worker_id!r} is taken by dtq itself")
    return check_name("worker name", worker_id)


def served_queues(registry: Registry) -> list[str]:
    """Return the queues of all handlers, and ``default``, sorted."""
    names = (registry.get(name) for name in registry.names())
    return sorted({DEFAULT_QUEUE, *(task.defaults.queue for task in names if task is not None)})
