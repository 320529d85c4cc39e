"""Recurring schedules: looking at them, setting, removing, pausing, firing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dtq_api.bodies import read_json
from dtq_api.keyring import Caller
from dtq_api.openapi import BODY_PROBLEMS, answers, body_of
from dtq_api.problems import Kind
from dtq_api.services import (
    MAX_OVERHEAD_BYTES,
    Administrator,
    Operator,
    Reader,
    Used,
    answer,
    small_body,
)
from dtq_api.shapes import Changed, Fired, ReasonRequest, ScheduleRequest, Schedules
from dtq_client.operating.schedules import (
    add_schedule,
    list_schedules,
    pause_schedule,
    remove_schedule,
    resume_schedule,
    run_schedule,
)
from dtq_core import codec
from dtq_core.cron import CronSchedule
from dtq_core.errors import InputError, ScheduleNotFoundError
from dtq_core.limits import check_name
from dtq_core.record import Options

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

Name = Annotated[str, Path(description="The name of a schedule.")]
_REASON = body_of(ReasonRequest, {"reason": "the report is not needed in August"})
_PROBLEMS = (*BODY_PROBLEMS, Kind.SCHEDULE_NOT_FOUND)


@router.get("", responses=answers(Schedules))
async def get_schedules(caller: Reader, services: Used) -> Response:
    """List recurring schedules: when each fires next, and what it fired last."""
    caller.require_all_queues()
    return answer(Schedules(await run_in_threadpool(list_schedules, services.store)))


@router.put(
    "/{name}",
    responses=answers(Changed, *BODY_PROBLEMS),
    openapi_extra=body_of(
        ScheduleRequest, {"task": "nightly_report", "cron": "30 2 * * *", "tz": "Europe/Berlin"}
    ),
)
async def put_schedule(
    request: Request, name: Name, caller: Administrator, services: Used
) -> Response:
    """Set a recurring schedule: it is added, or takes the place of the one of this name."""
    settings = services.settings
    limit_bytes = settings.max_payload_bytes + MAX_OVERHEAD_BYTES
    asked = await read_json(request, ScheduleRequest, limit_bytes, settings.api_read_timeout)
    caller.require_all_queues()
    schedule = CronSchedule(
        task=asked.task,
        cron=asked.cron,
        tz=asked.tz,
        payload=codec.encode([asked.args, asked.kwargs], "the arguments").decode(),
        options=Options(
            queue=asked.queue, band=asked.band, ttl=asked.ttl, max_attempts=asked.max_attempts
        ),
        misfire=asked.misfire,
        overlap=asked.overlap,
    )
    changed = await run_in_threadpool(
        add_schedule, services.store, name, schedule, caller.who, asked.reason, replace=True
    )
    return answer(Changed(changed))


@router.delete("/{name}", responses=answers(Changed, *_PROBLEMS), openapi_extra=_REASON)
async def delete_schedule(
    request: Request, name: Name, caller: Administrator, services: Used
) -> Response:
    """Remove a recurring schedule; tasks that it made stay."""
    reason = await _begin(request, name, caller)
    await run_in_threadpool(remove_schedule, services.store, name, caller.who, reason)
    return answer(Changed(True))


@router.post("/{name}/pause", responses=answers(Changed, *_PROBLEMS), openapi_extra=_REASON)
async def pause(request: Request, name: Name, caller: Operator, services: Used) -> Response:
    """Have a recurring schedule fire no more, until it is resumed."""
    reason = await _begin(request, name, caller)
    done = await run_in_threadpool(pause_schedule, services.store, name, caller.who, reason)
    return answer(Changed(done))


@router.post("/{name}/resume", responses=answers(Changed, *_PROBLEMS), openapi_extra=_REASON)
async def resume(request: Request, name: Name, caller: Operator, services: Used) -> Response:
    """Have a paused schedule fire again; what it missed is not made up."""
    reason = await _begin(request, name, caller)
    done = await run_in_threadpool(resume_schedule, services.store, name, caller.who, reason)
    return answer(Changed(done))


@router.post(
    "/{name}/run",
    status_code=201,
    responses=answers(Fired, *_PROBLEMS, status=201),
    openapi_extra=_REASON,
)
async def run(request: Request, name: Name, caller: Operator, services: Used) -> Response:
    """Fire a recurring schedule now, beside its slots."""
    reason = await _begin(request, name, caller)
    task_id = await run_in_threadpool(run_schedule, services.store, name, caller.who, reason)
    return answer(Fired(task_id), 201)


async def _begin(request: Request, name: str, caller: Caller) -> str:
    """Read the reason of an operation on a schedule. A name that none can have is of none.

    Raises:
        Problem: if the body is refused, or the caller may not do that.
        ScheduleNotFoundError: if no schedule can have this name.
    """
    asked = await small_body(request, ReasonRequest)
    caller.require_all_queues()
    try:
        check_name("schedule name", name)
    except InputError:
        raise ScheduleNotFoundError(name) from None
    return asked.reason
