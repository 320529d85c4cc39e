"""The whole deployment: figures, workers, the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dtq_api.openapi import answers
from dtq_api.problems import Kind
from dtq_api.services import Administrator, Reader, Used, answer
from dtq_api.shapes import MAX_PAGE, AuditPage, AuditVerdicts, Workers
from dtq_client.queries.audit import check_log, newest_acts
from dtq_client.queries.counters import Stats, live_workers, statistics

router = APIRouter(prefix="/v1", tags=["deployment"])


@router.get("/stats", responses=answers(Stats))
async def get_stats(caller: Reader, services: Used) -> Response:
    """Return the deployment in figures."""
    caller.require_all_queues()
    return answer(await run_in_threadpool(statistics, services.store))


@router.get("/workers", responses=answers(Workers))
async def get_workers(caller: Reader, services: Used) -> Response:
    """List live workers, and what each runs."""
    caller.require_all_queues()
    return answer(Workers(await run_in_threadpool(live_workers, services.store)))


@router.get("/audit", responses=answers(AuditPage, Kind.INVALID))
async def get_audit(
    caller: Administrator,
    services: Used,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> Response:
    """List the newest operations, oldest first: who did what, when and why."""
    caller.require_all_queues()
    return answer(AuditPage(await run_in_threadpool(newest_acts, services.store, limit)))


@router.get("/audit/check", responses=answers(AuditVerdicts))
async def check_audit(caller: Administrator, services: Used) -> Response:
    """Tell whether the audit log is as it was written."""
    caller.require_all_queues()
    return answer(AuditVerdicts(await run_in_threadpool(check_log, services.store)))
