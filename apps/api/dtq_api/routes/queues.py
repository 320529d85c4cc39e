"""Queues: looking at them, pausing, resuming, purging."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dtq_api.openapi import BODY_PROBLEMS, answers, body_of
from dtq_api.problems import Kind
from dtq_api.services import Administrator, Operator, Reader, Used, answer, small_body
from dtq_api.shapes import Changed, Operated, PurgeRequest, Queues, ReasonRequest
from dtq_client.operating.pausing import pause, resume
from dtq_client.operating.purging import count_waiting, purge
from dtq_client.queries.counters import all_queues

router = APIRouter(prefix="/v1/queues", tags=["queues"])

Queue = Annotated[str, Path(description="The name of a queue.")]
_REASON = body_of(ReasonRequest, {"reason": "the provider is down"})
_PROBLEMS = (*BODY_PROBLEMS, Kind.QUEUE_NOT_FOUND)


@router.get("", responses=answers(Queues))
async def list_queues(caller: Reader, services: Used) -> Response:
    """List queues and their counters: tasks waiting and running now, and ended ever."""
    found = await run_in_threadpool(all_queues, services.store)
    return answer(Queues([info for info in found if caller.reaches(info.queue)]))


@router.post("/{queue}/pause", responses=answers(Changed, *_PROBLEMS), openapi_extra=_REASON)
async def pause_queue(request: Request, queue: Queue, caller: Operator, services: Used) -> Response:
    """Have nothing more taken from a queue; what runs goes on."""
    asked = await small_body(request, ReasonRequest)
    caller.require_queue(queue)
    done = await run_in_threadpool(pause, services.store, [queue], caller.who, asked.reason)
    return answer(Changed(bool(done)))


@router.post("/{queue}/resume", responses=answers(Changed, *_PROBLEMS), openapi_extra=_REASON)
async def resume_queue(
    request: Request, queue: Queue, caller: Operator, services: Used
) -> Response:
    """Have tasks of a paused queue taken again."""
    asked = await small_body(request, ReasonRequest)
    caller.require_queue(queue)
    done = await run_in_threadpool(resume, services.store, [queue], caller.who, asked.reason)
    return answer(Changed(bool(done)))


@router.post(
    "/{queue}/purge",
    responses=answers(Operated, *_PROBLEMS),
    openapi_extra=body_of(PurgeRequest, {"dry_run": True}, {"reason": "wrong campaign"}),
)
async def purge_queue(
    request: Request, queue: Queue, caller: Administrator, services: Used
) -> Response:
    """Cancel whatever waits in a queue; what runs is left alone. A dry run only counts it."""
    asked = await small_body(request, PurgeRequest)
    caller.require_queue(queue)
    if asked.dry_run:
        matched = await run_in_threadpool(count_waiting, services.store, queue, asked.band)
        return answer(Operated(matched, 0, dry_run=True))
    done = await run_in_threadpool(
        purge, services.store, queue, caller.who, asked.reason, band=asked.band
    )
    return answer(Operated(done.matched, done.changed, dry_run=False))
