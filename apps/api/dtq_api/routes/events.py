"""Lifecycle events as they come: server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from dtq_api.keyring import Caller
from dtq_api.openapi import answers
from dtq_api.problems import Kind
from dtq_api.services import Reader, Services, Used
from dtq_api.tail import Seen, Tail
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError
from dtq_core.limits import check_name, is_name
from dtq_core.reads import Event

router = APIRouter(prefix="/v1/events", tags=["events"])

_PAUSE_S = 0.25
_PING_S = 15.0
_MEDIA_TYPE = "text/event-stream"


@router.get(
    "",
    responses=answers(Event, Kind.INVALID, media_type=_MEDIA_TYPE),
)
async def follow(
    request: Request,
    caller: Reader,
    services: Used,
    queue: Annotated[str | None, Query(description="Only of this queue.")] = None,
    newest: Annotated[int, Query(ge=0, le=500, description="So many past ones first.")] = 0,
) -> Response:
    """Follow the events of all tasks, as server-sent events.

    A connection that was lost is taken up again with the header `Last-Event-ID`, as browsers do.
    Where events have been thrown away meanwhile, one of the type `gap` comes first.
    """
    queue = caller.queue_to_list(None if queue is None else check_name("queue name", queue))
    tail = Tail(services.client.store)
    past = await tail.start(request.headers.get("last-event-id"), newest)
    frames = _frames(services, caller, tail, past, queue)
    return StreamingResponse(frames, media_type=_MEDIA_TYPE)


async def _frames(
    services: Services, caller: Caller, tail: Tail, past: list[Seen], queue: str | None
) -> AsyncIterator[bytes]:
    """Events as they are sent, and a comment now and then, by which a lost client is noticed.

    While Redis is away, nothing comes; a key that is revoked ends it.
    """
    yield b"event: gap\ndata: {}\n\n" if tail.gap else b": dtq\n\n"
    said_s = mono_s()
    while True:
        for event, cursor in past:
            if queue in {None, event.queue}:
                yield _frame(event, cursor)
                said_s = mono_s()
        if not past:
            await asyncio.sleep(_PAUSE_S)
        if mono_s() - said_s > _PING_S:
            yield b": ping\n\n"
            said_s = mono_s()
        past = []
        with suppress(RedisError):
            if not await services.keyring.lives(caller):
                return
            past = await tail.news()


def _frame(event: Event, cursor: str) -> bytes:
    kind = event.type if is_name(event.type) else "event"
    data = msgspec.json.encode(event)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (cursor.encode(), kind.encode(), data)
