"""Dead letters: listing, running again, removing for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dtq_api.keyring import Caller
from dtq_api.openapi import BODY_PROBLEMS, answers, body_of
from dtq_api.problems import Kind, Problem
from dtq_api.services import (
    Administrator,
    Operator,
    Reader,
    Services,
    Used,
    answer,
    small_body,
)
from dtq_api.shapes import (
    MAX_PAGE,
    LetterPage,
    LetterRequest,
    Operated,
    filter_of,
    short_letter,
)
from dtq_client.operating.letters import (
    Done,
    Filter,
    count_failed,
    discard,
    find_letters,
    letter_page,
    requeue,
)

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])

_EXAMPLES = (
    {"queue": "mail", "error": "TimeoutError", "dry_run": True},
    {"ids": ["019ae0c8d3c67d0f9a4b52c9a7d10000"], "reason": "the provider is back"},
    {"all": True},
)
Seconds = Annotated[float | None, Query(ge=0)]


@router.get("", responses=answers(LetterPage, Kind.INVALID))
async def list_letters(
    caller: Reader,
    services: Used,
    queue: Annotated[str | None, Query(description="Only of this queue.")] = None,
    name: Annotated[str | None, Query(description="Only of tasks of this name.")] = None,
    error: Annotated[str | None, Query(description="Only of errors of this type.")] = None,
    older_than: Seconds = None,
    newer_than: Seconds = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
    cursor: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """List dead letters, the oldest first. Long texts are cut."""
    wanted = Filter(
        queue=caller.queue_to_list(queue),
        task=name,
        error=error,
        older_than_s=older_than,
        newer_than_s=newer_than,
    )
    found = await run_in_threadpool(letter_page, services.store, wanted, limit, cursor)
    return answer(LetterPage([short_letter(one) for one in found.letters], found.next))


@router.post(
    "/requeue",
    responses=answers(Operated, *BODY_PROBLEMS),
    openapi_extra=body_of(LetterRequest, *_EXAMPLES),
)
async def requeue_letters(request: Request, caller: Operator, services: Used) -> Response:
    """Run failed tasks again, from their first attempt. A dry run only counts them."""
    return await _operate(request, caller, services, requeue)


@router.post(
    "/purge",
    responses=answers(Operated, *BODY_PROBLEMS),
    openapi_extra=body_of(LetterRequest, *_EXAMPLES),
)
async def purge_letters(request: Request, caller: Administrator, services: Used) -> Response:
    """Remove dead letters for good, with all that is kept of their tasks. A dry run counts them."""
    return await _operate(request, caller, services, discard)


async def _operate(
    request: Request, caller: Caller, services: Services, act: Callable[..., Done]
) -> Response:
    asked = await small_body(request, LetterRequest)
    wanted = await _meant(asked, caller, services)
    if asked.dry_run:
        return await _counted(services, wanted)
    done = await run_in_threadpool(act, services.store, wanted, caller.who, asked.reason)
    return answer(Operated(done.matched, done.changed, dry_run=False))


async def _meant(asked: LetterRequest, caller: Caller, services: Services) -> Filter:
    """Return which dead letters are meant; nobody means all of them by naming none.

    Raises:
        Problem: if nothing is named, or something that the caller does not reach.
        InputError: for a name or id that is refused.
    """
    if (filter_of(asked) == Filter()) is not asked.all:
        raise Problem(Kind.INVALID, 'give ids, or filters, or "all": true')
    if not asked.ids:
        queue = caller.queue_to_list(asked.queue)
        return filter_of(msgspec.structs.replace(asked, queue=queue))
    wanted = filter_of(asked)
    if caller.limited:
        for task_id in asked.ids:
            info = await services.client.get(task_id)
            caller.require_queue(info.queue)
    return wanted


async def _counted(services: Services, wanted: Filter) -> Response:
    """How many a requeue or a purge would meet now."""

    def count() -> int:
        if wanted.ids:
            return count_failed(services.store, wanted.ids)
        return sum(1 for _ in find_letters(services.store, wanted))

    return answer(Operated(await run_in_threadpool(count), 0, dry_run=True))
