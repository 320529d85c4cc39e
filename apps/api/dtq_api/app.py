"""The ASGI application: run by ``dtq api``, or mounted in a program's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dtq_api.gate import Gate
from dtq_api.openapi import document
from dtq_api.problems import Kind, Problem
from dtq_api.rates import Rates
from dtq_api.routes import deployment, events, health, letters, metrics, queues, schedules, tasks
from dtq_api.services import Services
from dtq_core.settings import Settings, load

_DESCRIPTION = "Submit tasks, follow them, and operate the queues. Errors are RFC 9457 problems."
_ROUTERS = (
    tasks.router,
    queues.router,
    letters.router,
    schedules.router,
    deployment.router,
    events.router,
    metrics.router,
    health.router,
)
_OF_STATUS = {404: Kind.NOT_FOUND, 405: Kind.METHOD_NOT_ALLOWED}


def create_app(
    settings: Settings | None = None, *, public: bool = True, **overrides: Any
) -> FastAPI:
    """Make the application. Its connections are opened when it starts, and closed when it ends.

    A program that mounts it runs its lifespan: ``app.router.lifespan_context(app)``.

    Args:
        settings: of this process, loaded unless given.
        public: whether it can be reached from elsewhere. Then nothing is served without an API
            key; otherwise only as long as none was ever made, to programs of this machine.
        overrides: single settings by name.

    Raises:
        SettingsError: for an unknown or wrong setting.
        RedisUnavailableError: when no server is named and none runs for this project.
    """
    settings = settings if settings is not None else load(overrides)
    app = FastAPI(
        title="dtq",
        version=version("dtq"),
        description=_DESCRIPTION,
        lifespan=_lifespan(settings, public=public),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in _ROUTERS:
        app.include_router(router)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(RequestValidationError, _bad_parameter)
    app.add_middleware(
        Gate,
        keyring=lambda: app.state.services.keyring,
        rates=Rates(settings.api_rate),
        most=settings.api_max_requests,
    )
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app


def _lifespan(settings: Settings, *, public: bool) -> Any:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.services = Services.start(settings, public=public)
        try:
            yield
        finally:
            await app.state.services.stop()

    return lifespan


async def _not_routed(_: Request, error: Exception) -> Response:
    """What Starlette answers where there is no such address or method."""
    assert isinstance(error, HTTPException)
    kind = _OF_STATUS.get(error.status_code, Kind.BAD_REQUEST)
    return Problem(kind, str(error.detail), headers=error.headers).response()


async def _bad_parameter(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return Problem(Kind.INVALID, "; ".join(map(_in_our_words, error.errors()))).response()


def _in_our_words(error: Any) -> str:
    where, name = error["loc"][0], error["loc"][-1]
    return f"{where} parameter {name}: {error['msg'][:1].lower()}{error['msg'][1:]}"
