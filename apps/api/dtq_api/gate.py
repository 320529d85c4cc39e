"""What every request passes before anything else: who asks, how often, and from where.

It is plain ASGI, since it stands before the routes: an address that does not exist answers no more
to a stranger than one that does.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtq_api.keyring import ANYBODY, Keyring
from dtq_api.problems import Kind, Problem, of_error
from dtq_api.rates import Rates
from dtq_core.addresses import is_loopback
from dtq_core.errors import DtqError, RedisError
from dtq_core.outage import Outage

_log = structlog.get_logger("dtq.api")

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What anybody may ask: whether the API lives, and whether it can serve."""

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]


class Gate:
    """The outermost layer of the API."""

    def __init__(
        self, app: ASGIApp, keyring: Callable[[], Keyring], rates: Rates, most: int
    ) -> None:
        """Stand before an application.

        Args:
            app: what lies behind.
            keyring: returns the API keys, once the application has started.
            rates: how often a caller may ask.
            most: how many requests may be under way at once.
        """
        self._app = app
        self._keyring = keyring
        self._rates = rates
        self._most = most
        self._under_way = 0
        self._outage = Outage(_log, "Redis cannot serve requests", "Redis serves requests again")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        self._under_way += 1
        try:
            if _path_in(scope) not in OPEN_PATHS:
                await self._admit(scope)
            await self._app(scope, receive, answer)
            self._outage.over()
        except ClientDisconnect:
            pass
        except Exception as error:
            if answer.begun:
                _log.exception("an answer broke off", path=scope["path"])
                raise
            await self._problem(error, scope).response()(scope, receive, answer)
        finally:
            self._under_way -= 1

    async def _admit(self, scope: Scope) -> None:
        if self._under_way > self._most:
            raise Problem(Kind.UNAVAILABLE, "too many requests are under way")
        headers = Headers(scope=scope)
        caller = await self._keyring().caller(headers.get("authorization"))
        if caller is ANYBODY:
            _check_local(scope, headers)
        if wait_s := self._rates.take(caller.who):
            retry_after = {"Retry-After": str(wait_s)}
            raise Problem(Kind.TOO_MANY, "this caller asks too often", headers=retry_after)
        scope.setdefault("state", {})["caller"] = caller

    def _problem(self, error: Exception, scope: Scope) -> Problem:
        if isinstance(error, Problem):
            return error
        if isinstance(error, RedisError):
            self._outage.met(error)
        if isinstance(error, DtqError):
            return of_error(error)
        _log.exception("a request met a fault", method=scope["method"], path=scope["path"])
        return Problem(Kind.INTERNAL, "the fault is in the log of the API")


class _Answer:
    """Sends an answer on, with the headers that all have."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await self._send(message)


def _check_local(scope: Scope, headers: Headers) -> None:
    """Where no key is asked for, serve programs of this machine, not pages that a browser shows.

    A page of elsewhere can have a browser send requests here, also under a name that it points to
    this machine.
    """
    client = scope.get("client")
    if client is not None and not is_loopback(client[0]):
        raise Problem(Kind.UNAUTHENTICATED, "make an API key first: dtq keys create NAME")
    if not is_loopback(_host_in(headers)) or "origin" in headers:
        raise Problem(Kind.FORBIDDEN, "without API keys, only programs of this machine are served")


def _host_in(headers: Headers) -> str:
    """The host that a request names, without its port; empty where it names none."""
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""


def _path_in(scope: Scope) -> str:
    """The path inside the application, wherever that is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
