"""A deployment of a test's own: a prefix, a registry, a client, and workers that end with it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import redis.asyncio

from dtq_client import AsyncClient, AsyncHandle
from dtq_core.cancelling import cancel
from dtq_core.settings import Settings, load
from dtq_core.store import Store
from dtq_scheduler import Scheduler
from dtq_tasks import Registry, TaskDecorator
from dtq_worker import Worker
from support.ledger import check_ledger

T = TypeVar("T")

BRISK = {
    "visibility_timeout": 1.0,
    "reaper_interval": 0.3,
    "shutdown_grace": 2.0,
    "concurrency": 4,
    "processes": 1,
    "scheduler_tick": 0.02,
    "leader_lease": 1.0,
    "unknown_task_delay": 0.1,
    "unknown_task_timeout": 60.0,
    "connect_timeout": 2.0,
    "retry_timeout": 5.0,
}


async def eventually(what: str, probe: Callable[[], T | Awaitable[T]], limit_s: float = 15.0) -> T:
    """Wait until a probe answers something true, and return that."""
    end = asyncio.get_running_loop().time() + limit_s
    while True:
        found = probe()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if asyncio.get_running_loop().time() > end:
            raise AssertionError(f"waited {limit_s:g} s for: {what}")
        await asyncio.sleep(0.01)


class Stage:
    """Everything a test needs; all it submits is in the ledger at its end."""

    def __init__(self, url: str, **settings: Any) -> None:
        self.url = url
        self.values = {
            **BRISK,
            "redis_url": url,
            "prefix": f"t{secrets.token_hex(4)}",
            **settings,
        }
        self.registry = Registry()
        self.task = TaskDecorator(self.registry)
        self.client = AsyncClient(**self.values)
        self.raw = redis.asyncio.Redis.from_url(url)
        self.accepted: list[str] = []
        self._workers: list[Worker] = []

    @property
    def keys(self) -> Any:
        """The keys of the only partition."""
        return self.client.store.partitions.all[0]

    def settings(self, **overrides: Any) -> Settings:
        return load({**self.values, **overrides}, environ={})

    async def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> AsyncHandle[Any]:
        handle = await self.client.submit(task, *args, **kwargs)
        self.accepted.append(handle.id)
        return handle

    async def submit_many(self, task: Any, calls: Any) -> list[AsyncHandle[Any]]:
        handles = await self.client.submit_many(task, calls)
        self.accepted += [handle.id for handle in handles]
        return handles

    async def submit_by_name(
        self, name: str, args: Any = (), kwargs: Any = None, **options: Any
    ) -> AsyncHandle[Any]:
        handle = await self.client.submit_by_name(name, args, kwargs, **options)
        self.accepted.append(handle.id)
        return handle

    @contextlib.asynccontextmanager
    async def worker(
        self,
        registry: Registry | None = None,
        *,
        scheduler: bool = True,
        worker_id: str | None = None,
        queues: list[str] | None = None,
        **overrides: Any,
    ) -> AsyncIterator[Worker]:
        """Run a worker in this process; it is stopped in order at the end of the block."""
        worker = Worker(
            registry or self.registry,
            queues,
            worker_id=worker_id,
            scheduler=scheduler,
            settings=self.settings(**overrides),
        )
        running = asyncio.create_task(worker.run())
        self._workers.append(worker)
        try:
            await first_of(running, worker.running.wait())
            yield worker
        finally:
            worker.retire()
            await asyncio.wait_for(running, 20)
            self._workers.remove(worker)

    @contextlib.asynccontextmanager
    async def scheduler(self, **overrides: Any) -> AsyncIterator[Scheduler]:
        """Run a scheduler in this process; it is stopped at the end of the block."""
        scheduler = Scheduler(self.settings(**overrides))
        running = asyncio.create_task(scheduler.run())
        try:
            yield scheduler
        finally:
            await asyncio.wait_for(cancel(running), 20)

    async def ended(self, *handles: AsyncHandle[Any], limit_s: float = 15.0) -> list[str]:
        """Wait until tasks have ended, and return their statuses."""

        async def all_ended() -> list[str] | None:
            infos = [await handle.info() for handle in handles]
            return (
                [info.status for info in infos] if all(i.status.terminal for i in infos) else None
            )

        return await eventually("the end of the tasks", all_ended, limit_s)

    async def has_status(self, handle: AsyncHandle[Any], status: str) -> bool:
        return (await handle.info()).status == status

    async def started(self, *handles: AsyncHandle[Any]) -> None:
        """Wait until handlers have begun: ``RUNNING`` is said before that."""
        wanted = {handle.id for handle in handles}
        await eventually("the handlers to start", lambda: wanted <= self._begun())

    def _begun(self) -> set[str]:
        held = (held for worker in self._workers for held in worker._leases.all())
        return {h.claim.task_id for h in held if h.interruptible or h.in_thread}

    def check_ledger(self) -> None:
        """Check that every accepted task has ended, and that nothing is left lying about."""
        store = Store(self.settings())
        try:
            check_ledger(store, self.accepted)
        finally:
            store.close()

    async def close(self) -> None:
        await self.client.close()
        await self.raw.aclose()


@contextlib.asynccontextmanager
async def staged(url: str, **settings: Any) -> AsyncIterator[Stage]:
    """Set up a stage; at the end, the ledger is checked."""
    stage = Stage(url, **settings)
    try:
        yield stage
        stage.check_ledger()
    finally:
        await stage.close()


async def first_of(task: asyncio.Task[Any], work: Any) -> None:
    """Wait for some work, or for a task that ends before: its error is raised."""
    waiting = asyncio.ensure_future(work)
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting.cancel()
        task.result()
