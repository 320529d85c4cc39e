"""The supervisor: starts worker processes, and deals with their deaths. It runs no user code.

The moment a child dies, what it held is made overdue (``abandon``), so that any worker takes it at
once, not after the visibility timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

import msgspec
import structlog

from dtq_core.cancelling import cancel
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError, WorkerStartError
from dtq_core.settings import Settings
from dtq_core.store import AsyncStore
from dtq_scheduler import Scheduler
from dtq_worker.child import EXIT_CANNOT_START, EXIT_HURRIED, MAX_REFUSAL_BYTES, Orders
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
_KILL_HURRIED_AFTER_S = 1.5
"""How long a child may live once it was told to hurry."""


class _Child(NamedTuple):
    process: asyncio.subprocess.Process
    line: socket.socket

    def stop(self, *, hurry: bool) -> None:
        """Tell it to stop. A signal ends it even before it listens; two signals may become one."""
        _signal(self.process, signal.SIGTERM)
        if hurry:
            with contextlib.suppress(OSError):
                self.line.send(b"!")


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
        self._children: dict[str, _Child] = {}
        self._abandoning: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._refusal: str | None = None
        self._proven = False

    async def run(self) -> int:
        """Supervise until told to stop by SIGTERM or SIGINT.

        Returns:
            The exit code: 0 after an orderly stop, 1 when hurried.

        Raises:
            RedisError: if the server cannot be reached or is not fit, before any child is started.
            WorkerStartError: if no child can start, with the reason that the first one gave.
        """
        await self._store.check(eviction_matters=not self._allow_eviction)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        scheduling = asyncio.create_task(self._schedule()) if self._with_scheduler else None
        keepers = [
            asyncio.create_task(self._keep(), name="dtq-keeper")
            for _ in range(self._settings.processes)
        ]
        try:
            await asyncio.gather(*keepers)
            if self._abandoning:
                await asyncio.wait(self._abandoning, timeout=_ABANDON_S)
        finally:
            await cancel(*self._abandoning)
            if scheduling is not None:
                await cancel(scheduling)
            await self._store.close()
        if self._refusal is not None:
            raise WorkerStartError(self._refusal)
        return EXIT_HURRIED if self._hurry.is_set() else 0

    def stop(self) -> None:
        """Stop all children in order; a second call makes them give everything back at once."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()
        for child in self._children.values():
            child.stop(hurry=self._hurry.is_set())

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
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff):
                    await self._stopping.wait()

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

    async def _one_life(self, worker_id: str) -> int:
        """Start a child, wait for its end, and return its exit code."""
        line, its_end = socket.socketpair()
        with line:
            with its_end:
                try:
                    with _ctrl_c_blocked():
                        process = await asyncio.create_subprocess_exec(
                            sys.executable, "-m", "dtq_worker.child", stdin=its_end.fileno()
                        )
                except OSError as error:  # no process or memory to be had now
                    _log.error("a worker process cannot be started", error=str(error))
                    return EXIT_HURRIED
            child = self._children[worker_id] = _Child(process, line)
            try:
                self._give_orders(line, worker_id)
                if self._stopping.is_set():  # the signal came while it was being started
                    child.stop(hurry=self._hurry.is_set())
                code = await self._until_ended(process)
            finally:
                del self._children[worker_id]
            if code == EXIT_CANNOT_START:
                self._refusal = self._refusal or _last_words(line)
            return code

    def _give_orders(self, line: socket.socket, worker_id: str) -> None:
        orders = Orders(
            worker_id,
            self._modules,
            self._queues,
            {**asdict(self._settings), "redis_url": self._store.url},
            self._allow_eviction,
        )
        with contextlib.suppress(ConnectionError):  # it died at once; its exit code tells
            line.sendall(msgspec.json.encode(orders) + b"\n")

    async def _until_ended(self, process: asyncio.subprocess.Process) -> int:
        ended = asyncio.create_task(process.wait())
        await _first(ended, self._stopping)
        await _first(ended, self._hurry, self._settings.shutdown_grace + _KILL_AFTER_S)
        if self._hurry.is_set():
            await asyncio.wait([ended], timeout=_KILL_HURRIED_AFTER_S)
        if not ended.done():
            _log.error("a worker process does not stop and is killed", pid=process.pid)
            _signal(process, signal.SIGKILL)
        return await ended

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


async def _first(
    task: asyncio.Task[int], event: asyncio.Event, limit_s: float | None = None
) -> None:
    """Wait for a task or an event, whichever is first."""
    happening = asyncio.create_task(event.wait())
    await asyncio.wait([task, happening], timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    happening.cancel()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """A process started meanwhile hears no Ctrl-C until it says what to do about it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _last_words(line: socket.socket) -> str | None:
    """Why a child could not start; None where it was a handler that ended it with that code."""
    line.setblocking(False)
    try:
        return line.recv(MAX_REFUSAL_BYTES).decode("utf-8", "replace") or None
    except OSError:
        return None


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal; ``process.send_signal`` may take away the exit code that asyncio waits for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
