"""``dtq api``: uvicorn, within limits, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple

import structlog
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from dtq_api.app import create_app
from dtq_api.protocol import LimitedProtocol
from dtq_client.operating.api_keys import list_keys
from dtq_core.addresses import is_loopback
from dtq_core.errors import SettingsError
from dtq_core.settings import Settings
from dtq_core.startup import found_server
from dtq_core.store import Store

_log = structlog.get_logger("dtq.api")

_KEEP_ALIVE_S = 65
"""Longer than load balancers keep an idle connection, so that they, not we, close it."""
_BACKLOG = 2_048
_STOP_GRACE_S = 5


Dress = Callable[[FastAPI, Settings], ASGIApp]
"""Makes of an API what is served: the API itself, or more beside it."""


class Serving(NamedTuple):
    """An API that serves.

    Attributes:
        url: where.
        work: ends when the server does.
    """

    url: str
    work: asyncio.Task[None]


async def serve(settings: Settings, dress: Dress | None = None) -> None:
    """Serve until SIGTERM or SIGINT. Arguments and errors as :func:`served`."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if not await found_server(settings, stopping):
        return
    async with served(settings, dress) as serving:
        _log.info("api started", url=serving.url)
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait([serving.work, stop], return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
    _log.info("api stopped")


@contextlib.asynccontextmanager
async def served(settings: Settings, dress: Dress | None = None) -> AsyncIterator[Serving]:
    """Serve for as long as the block lasts.

    Args:
        settings: of this process.
        dress: what is served beside the API; nothing unless given.

    Raises:
        SettingsError: if the address cannot be listened on, or is not of this machine and there is
            no API key.
        RedisError: if the server cannot be reached, is not fit, or does not let us in.
    """
    public = not is_loopback(settings.api_host)
    if public and not await asyncio.to_thread(_any_key, settings):
        raise SettingsError(
            f"--host {settings.api_host}: others could reach the API, and there is no API key yet; "
            "make one first: dtq keys create NAME --role admin"
        )
    api = create_app(settings, public=public)
    app = api if dress is None else dress(api, settings)
    with _listening(settings) as listener:
        async with api.router.lifespan_context(api):
            server = _Server(_config(app, settings))
            work = asyncio.create_task(server.serve(sockets=[listener]), name="dtq-api")
            try:
                yield Serving(_url(listener), work)
            finally:
                server.should_exit = True
                await work


class _Server(uvicorn.Server):
    """Leaves the signals to :func:`serve`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


def _config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    protocol = type("_Protocol", (LimitedProtocol,), {"read_timeout_s": settings.api_read_timeout})
    logging.getLogger("uvicorn").setLevel(
        logging.CRITICAL
    )  # its lines tell nothing that ours do not
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_STOP_GRACE_S,
    )


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    address = (settings.api_host, settings.api_port)
    try:
        family = socket.AF_INET6 if ":" in settings.api_host else socket.AF_INET
        listener = socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"{settings.api_host}:{settings.api_port}"
        raise SettingsError(f"cannot listen on {where}: {error.strerror or error}") from None
    with listener:
        yield listener


def _url(listener: socket.socket) -> str:
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _any_key(settings: Settings) -> bool:
    with contextlib.closing(Store(settings)) as store:
        return bool(list_keys(store))
