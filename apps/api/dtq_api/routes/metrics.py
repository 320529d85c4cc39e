"""What a system that collects metrics asks for."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dtq_api.metrics import CONTENT_TYPE, exposition
from dtq_api.openapi import answers
from dtq_api.services import Reader, Used
from dtq_client.queries.scraping import scrape

router = APIRouter(tags=["deployment"])


@router.get("/metrics", responses=answers(str, media_type="text/plain"))
async def get_metrics(caller: Reader, services: Used) -> Response:
    """Return metrics of the deployment, in the format of Prometheus."""
    caller.require_all_queues()
    told = await run_in_threadpool(scrape, services.store)
    return Response(exposition(told), media_type=CONTENT_TYPE)
