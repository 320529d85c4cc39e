"""Queues: how many tasks stand where, pausing, resuming, purging."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from dtq_client.operating.pausing import pause, resume
from dtq_client.operating.purging import purge
from dtq_client.queries.counters import unserved
from dtq_client.queries.rates import QueueFigures
from dtq_core.api_keys import Role
from dtq_core.states import WAITING, Status
from dtq_dashboard.acts import acted
from dtq_dashboard.pages import View, caller_in


async def queues(request: Request) -> View:
    """Draw the queues that the key reaches."""
    caller = caller_in(request)
    sample, found = await request.app.state.history.now()
    lonely = unserved(sample.queues, sample.workers)
    shown = [_row(queue, lonely) for queue in found.queues if caller.reaches(queue.queue)]
    return View("queues.html", "Queues", {"queues": shown})


def _row(queue: QueueFigures, lonely: frozenset[str]) -> dict[str, Any]:
    tasks, rate = queue.tasks, queue.ended_per_second
    return {
        "name": queue.queue,
        "paused_since": queue.paused_since,
        "lonely": queue.queue in lonely,
        "waiting": tasks[Status.QUEUED],
        "running": tasks[Status.RUNNING],
        "retrying": tasks[Status.RETRYING],
        "scheduled": tasks[Status.SCHEDULED],
        "dead": tasks[Status.DEAD_LETTERED],
        "ended": "…" if rate is None else f"{rate:,.1f}",
        "to_purge": sum(tasks[status] for status in WAITING),
    }


async def pause_queue(request: Request) -> Response:
    """Have nothing more taken from a queue."""
    return await acted(request, Role.OPERATE, _pause)


async def resume_queue(request: Request) -> Response:
    """Have tasks of a queue taken again."""
    return await acted(request, Role.OPERATE, _resume)


async def purge_queue(request: Request) -> Response:
    """Cancel whatever waits in a queue."""
    return await acted(request, Role.ADMIN, _purge)


async def _pause(request: Request, reason: str) -> str:
    queue, store = _queue(request), request.app.state.services.store
    await run_in_threadpool(pause, store, [queue], caller_in(request).who, reason)
    return "/queues"


async def _resume(request: Request, reason: str) -> str:
    queue, store = _queue(request), request.app.state.services.store
    await run_in_threadpool(resume, store, [queue], caller_in(request).who, reason)
    return "/queues"


async def _purge(request: Request, reason: str) -> str:
    queue, store = _queue(request), request.app.state.services.store
    await run_in_threadpool(purge, store, queue, caller_in(request).who, reason)
    return "/queues"


def _queue(request: Request) -> str:
    queue: str = request.path_params["queue"]
    caller_in(request).require_queue(queue)
    return queue
