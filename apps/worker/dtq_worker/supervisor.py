"""The supervisor: starts worker processes, and deals with their deaths. It runs no user code.

The moment a child dies, what it held is made overdue (``abandon``), so that any worker takes it at
once, not after the visibility timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Sequence
from dataclasses import asdict

import structlog

from dtq_core.cancelling import cancel
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError, WorkerStartError
from dtq_core.settings import Settings
from dtq_core.startup import check_when_ready
from dtq_core.store import AsyncStore
from dtq_scheduler import Scheduler
from dtq_worker.child import EXIT_CANNOT_START, EXIT_HURRIED, Orders
from dtq_worker.children import Child
from dtq_worker.identity import new_worker_id

_log = structlog.get_logger("dtq.supervisor")

_STEADY_S = 5.0
"""A child that lived this long is started again at once."""
_BRIEF_S = 1.0
"""The same of one that ended in order."""
_LONGEST_BACKOFF_S = 30.0
_SCHEDULER_AGAIN_S = 1.0
_KILL_AFTER_S = 15.0
"""How long beyond its grace time a stopping child may live."""
_ABANDON_S = 1.0
"""How long it tries, at the very end, to free what the dead held."""


class Supervisor:
    """Keeps a number of worker processes alive."""

    def __init__(
        self,
        settings: Settings,
        modules: Sequence[str],
        queues: Sequence[str] | None = None,
        *,
        scheduler: bool = True,
        allow_eviction: bool = False,
    ) -> None:
        """Set up; nothing is started before :meth:`run`.

        Args:
            settings: of this process, for all children.
            modules: what they import for handlers.
            queues: what they serve; unless given, the queues of the handlers.
            scheduler: whether a scheduler candidate runs here.
            allow_eviction: whether to work on a server that may throw tasks away.
        """
        self._settings = settings
        self._modules = list(modules)
        self._queues = None if queues is None else list(queues)
        self._allow_eviction = allow_eviction
        self._store = AsyncStore(settings)
        self._with_scheduler = scheduler
        self._children: dict[str, Child] = {}
        self._abandoning: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._suspects = asyncio.Event()
        self._refusal: str | None = None
        self._proven = False

    async def run(self) -> int:
        """Supervise until told to stop by SIGTERM or SIGINT.

        Returns:
            The exit code: 0 after an orderly stop, 1 when hurried.

        Raises:
            RedisError: if the server cannot be reached or is not fit, before any child is started.
                One that still loads is waited for.
            WorkerStartError: if no child can start, with the reason that the first one gave.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            if await check_when_ready(
                self._store, self._stopping, eviction_matters=not self._allow_eviction
            ):
                await self._work()
        finally:
            await self._store.close()
        if self._refusal is not None:
            raise WorkerStartError(self._refusal)
        return EXIT_HURRIED if self._hurry.is_set() else 0

    def stop(self) -> None:
        """Stop all children in order; a second call makes them give everything back at once."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()
        self._suspects.set()  # wakes what waits for them
        for child in self._children.values():
            child.stop(hurry=self._hurry.is_set())

    async def _work(self) -> None:
        """Keep children, and a scheduler candidate, until told to stop."""
        scheduling = asyncio.create_task(self._schedule()) if self._with_scheduler else None
        keepers = [
            asyncio.create_task(self._keep(), name="dtq-keeper")
            for _ in range(self._settings.processes)
        ]
        try:
            await asyncio.gather(*keepers, self._isolate())
            if self._abandoning:
                await asyncio.wait(self._abandoning, timeout=_ABANDON_S)
        finally:
            await cancel(*self._abandoning)
            if scheduling is not None:
                await cancel(scheduling)

    async def _schedule(self) -> None:
        """Run a scheduler candidate; one that breaks off is started again."""
        while True:
            try:
                await Scheduler(self._settings, self._store.url).run()
            except Exception:
                _log.exception("the scheduler breaks off and is started again")
            await asyncio.sleep(_SCHEDULER_AGAIN_S)

    async def _keep(self) -> None:
        """Keep one place filled."""
        backoff = 0.0
        while not self._stopping.is_set():
            started_s = mono_s()
            worker_id = new_worker_id()
            code = await self._one_life(worker_id)
            if not self._stopping.is_set() and await self._is_refused(code):
                self.stop()
                return
            self._clear_up(worker_id, code)
            if self._stopping.is_set():
                return
            steady = mono_s() - started_s >= (_STEADY_S if code else _BRIEF_S)
            backoff = 0.0 if steady else min(_LONGEST_BACKOFF_S, 2 * backoff or 0.1)
            await self._pause(backoff)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _isolate(self) -> None:
        """Run an isolating child whenever there are suspects, beside the others."""
        while await self._suspects.wait() and not self._stopping.is_set():
            self._suspects.clear()
            worker_id = new_worker_id()
            code = await self._one_life(worker_id, isolating=True)
            self._clear_up(worker_id, code)
            await self._pause(_LONGEST_BACKOFF_S if code == EXIT_CANNOT_START else 0)

    async def _is_refused(self, code: int) -> bool:
        """Whether no child can start. Where one works, or did, a refusal ends nothing else."""
        self._proven = self._proven or code != EXIT_CANNOT_START or await self._any_at_work()
        if self._refusal is None or not self._proven:
            return self._refusal is not None
        _log.error("a worker process cannot start", reason=self._refusal)
        self._refusal = None
        return False

    async def _any_at_work(self) -> bool:
        """Whether a child has come so far as to say that it lives."""
        keys = self._store.partitions.all[0]
        beats = [("EXISTS", keys.worker(worker_id)) for worker_id in self._children]
        try:
            return any(await self._store.link.pipeline(beats)) if beats else False
        except RedisError:
            return False

    async def _one_life(self, worker_id: str, *, isolating: bool = False) -> int:
        """Start a child, wait for its end, and return its exit code."""
        try:
            child = await Child.start(self._suspects.set)
        except OSError as error:  # no process or memory to be had now
            _log.error("a worker process cannot be started", error=str(error))
            return EXIT_HURRIED
        self._children[worker_id] = child
        try:
            await child.give(self._orders(worker_id, isolating=isolating))
            if self._stopping.is_set():  # the signal came while it was being started
                child.stop(hurry=self._hurry.is_set())
            grace_s = self._settings.shutdown_grace + _KILL_AFTER_S
            code = await child.ended(self._stopping, self._hurry, grace_s)
        finally:
            del self._children[worker_id]
            child.close()
        if code == EXIT_CANNOT_START and not isolating:
            self._refusal = self._refusal or child.refusal
        return code

    def _orders(self, worker_id: str, *, isolating: bool) -> Orders:
        return Orders(
            worker_id,
            self._modules,
            self._queues,
            {**asdict(self._settings), "redis_url": self._store.url},
            self._allow_eviction,
            isolating,
        )

    def _clear_up(self, worker_id: str, code: int) -> None:
        """Free what a child held, in the background; even 0 may be a handler's own exit."""
        stopping = {EXIT_HURRIED, EXIT_CANNOT_START, -signal.SIGTERM}
        expected = {0, *stopping} if self._stopping.is_set() else {0}
        if code not in expected:
            _log.error("a worker process died", worker=worker_id, exit_code=code)
        task = asyncio.create_task(self._abandon(worker_id), name="dtq-abandon")
        self._abandoning.add(task)
        task.add_done_callback(self._abandoning.discard)

    async def _abandon(self, worker_id: str) -> None:
        try:
            await self._store.abandon(worker_id)
        except RedisError as error:  # the reaper does it after the visibility timeout
            _log.warning("its tasks wait for the reaper", worker=worker_id, error=str(error))
