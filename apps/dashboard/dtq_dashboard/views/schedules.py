"""Recurring schedules: when each fires next; pausing, resuming, firing now."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from dtq_client.operating.schedules import (
    list_schedules,
    pause_schedule,
    resume_schedule,
    run_schedule,
)
from dtq_core.api_keys import Role
from dtq_dashboard.acts import Act, acted
from dtq_dashboard.pages import View, caller_in


async def schedules(request: Request) -> View:
    """Draw the schedules."""
    caller_in(request).require_all_queues()
    found = await run_in_threadpool(list_schedules, request.app.state.services.store)
    return View("schedules.html", "Schedules", {"schedules": found})


def _acting(work: Callable[..., object]) -> Act:
    async def act(request: Request, reason: str) -> str:
        caller = caller_in(request)
        caller.require_all_queues()
        store, name = request.app.state.services.store, request.path_params["name"]
        await run_in_threadpool(work, store, name, caller.who, reason)
        return "/schedules"

    return act


async def pause(request: Request) -> Response:
    """Have a schedule fire no more."""
    return await acted(request, Role.OPERATE, _acting(pause_schedule))


async def resume(request: Request) -> Response:
    """Have a paused schedule fire again."""
    return await acted(request, Role.OPERATE, _acting(resume_schedule))


async def run(request: Request) -> Response:
    """Fire a schedule now."""
    return await acted(request, Role.OPERATE, _acting(run_schedule))
