"""Whether the API lives, and whether it can serve."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from dtq_api.openapi import answers
from dtq_api.problems import Kind
from dtq_api.services import Used, answer
from dtq_api.shapes import Health

router = APIRouter(tags=["health"])

_OPEN: dict[str, list[object]] = {"security": []}


@router.get("/healthz", responses=answers(Health), openapi_extra=_OPEN)
async def healthz() -> Response:
    """Tell that the API lives; Redis is not asked."""
    return answer(Health())


@router.get("/readyz", responses=answers(Health, Kind.UNAVAILABLE), openapi_extra=_OPEN)
async def readyz(services: Used) -> Response:
    """Tell whether tasks can be accepted: a script writes to each partition."""
    store = services.client.store
    await asyncio.gather(*(store.run(calls.probe(), retry_s=0) for calls in store.calls))
    return answer(Health())
