"""The dashboard beside the API: one process, one set of connections, one set of keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from dtq_api.keyring import Keyring
from dtq_api.problems import Kind, Problem
from dtq_api.rates import Rates
from dtq_core.cancelling import cancel
from dtq_core.settings import Settings
from dtq_dashboard import signing_in
from dtq_dashboard.door import Door, path_in
from dtq_dashboard.history import History
from dtq_dashboard.pages import page, problem_page
from dtq_dashboard.views import audit, letters, overview, queues, schedules, tasks, workers

PATH = "/dashboard"
_STATIC = Path(__file__).parent / "static"

_ROUTES = [
    Route("/sign-in", signing_in.show, methods=["GET"]),
    Route("/sign-in", signing_in.sign_in, methods=["POST"]),
    Route("/sign-out", signing_in.sign_out, methods=["POST"]),
    Route("/", page(overview.overview)),
    Route("/queues", page(queues.queues)),
    Route("/queues/{queue}/pause", queues.pause_queue, methods=["POST"]),
    Route("/queues/{queue}/resume", queues.resume_queue, methods=["POST"]),
    Route("/queues/{queue}/purge", queues.purge_queue, methods=["POST"]),
    Route("/tasks", tasks.tasks),
    Route("/tasks/{task_id}", page(tasks.task)),
    Route("/tasks/{task_id}/cancel", tasks.cancel_task, methods=["POST"]),
    Route("/tasks/{task_id}/requeue", tasks.requeue_task, methods=["POST"]),
    Route("/dead-letters", page(letters.letters)),
    Route("/dead-letters/requeue", letters.requeue_letters, methods=["POST"]),
    Route("/dead-letters/purge", letters.purge_letters, methods=["POST"]),
    Route("/workers", page(workers.workers)),
    Route("/schedules", page(schedules.schedules)),
    Route("/schedules/{name}/pause", schedules.pause, methods=["POST"]),
    Route("/schedules/{name}/resume", schedules.resume, methods=["POST"]),
    Route("/schedules/{name}/run", schedules.run, methods=["POST"]),
    Route("/audit", page(audit.audit)),
    Mount("/static", StaticFiles(directory=_STATIC)),
]


def with_dashboard(api: FastAPI, settings: Settings) -> ASGIApp:
    """Return an application that serves an API, and the dashboard under ``/dashboard``.

    The dashboard stands beside the gate of the API, behind a door of its own: browsers bring a
    cookie, not a header. It begins and ends with the API.

    Args:
        api: from :func:`dtq_api.app.create_app`, not yet started.
        settings: of this process.
    """

    def keyring() -> Keyring:
        found: Keyring = api.state.services.keyring
        return found

    dashboard = Starlette(routes=_ROUTES, exception_handlers={404: _not_found})
    api.router.lifespan_context = _lifespan(api.router.lifespan_context, dashboard)
    door = Door(dashboard, keyring, Rates(settings.api_rate), settings.api_max_requests)
    return _Both(api, door)


def _lifespan(begin: Callable[[FastAPI], Any], dashboard: Starlette) -> Any:
    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[Any]:
        async with begin(api) as state:
            dashboard.state.services = api.state.services
            dashboard.state.history = History(api.state.services.store)
            looking = asyncio.create_task(dashboard.state.history.run(), name="dtq-dashboard")
            try:
                yield state
            finally:
                await cancel(looking)

    return lifespan


class _Both:
    """Leads each request to the one it is meant for; who comes to ``/`` is led to the dashboard."""

    def __init__(self, api: ASGIApp, dashboard: ASGIApp) -> None:
        self._api = api
        self._dashboard = dashboard
        self._ahead = RedirectResponse(f"{PATH}/", 303)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._api(scope, receive, send)
        elif path_in(scope) in {"/", PATH}:
            await self._ahead(scope, receive, send)
        elif path_in(scope).startswith(f"{PATH}/"):
            inside = {**scope, "root_path": scope.get("root_path", "") + PATH}
            await self._dashboard(inside, receive, send)
        else:
            await self._api(scope, receive, send)


async def _not_found(request: Request, _: Exception) -> Response:
    if "caller" not in request.scope.get("state", {}):  # of a static file, which all may ask for
        return PlainTextResponse("there is no such file\n", 404)

    async def work() -> Response:
        raise Problem(Kind.NOT_FOUND, "there is no such page")

    return await problem_page(request, work)
