"""What every request of a browser passes: who signed in, from which page, how often.

It is plain ASGI, since it stands before the routes, as the gate of the API does.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtq_api.keyring import ANYBODY, Caller, Keyring
from dtq_api.problems import Kind, Problem, of_error
from dtq_api.rates import Rates
from dtq_core.addresses import is_loopback
from dtq_core.errors import DtqError

_log = structlog.get_logger("dtq.dashboard")

COOKIE = "dtq_key"
OPEN_PATHS = frozenset({"/sign-in"})
"""What anybody may ask, besides static files."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing runs, loads or is sent that does not come from here; nothing inline either."""
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers call the origin of a form "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_SAFE = frozenset({"GET", "HEAD"})


class Door:
    """The outermost layer of the dashboard."""

    def __init__(
        self, app: ASGIApp, keyring: Callable[[], Keyring], rates: Rates, most: int
    ) -> None:
        """Stand before an application.

        Args:
            app: what lies behind.
            keyring: returns the API keys, once the application has started.
            rates: how often a caller may ask.
            most: how many requests may be under way at once; an open page is one.
        """
        self._app = app
        self._keyring = keyring
        self._rates = rates
        self._most = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._under_way += 1
        try:
            answer = await self._first_answer(Request(scope))
            await (answer or self._app)(scope, receive, _Guarded(send, scope))
        finally:
            self._under_way -= 1

    async def _first_answer(self, request: Request) -> Response | None:
        try:
            if self._under_way > self._most:
                raise Problem(Kind.UNAVAILABLE, "too many pages are open")
            return await self._turned_away(request)
        except Problem as problem:
            return _page_of(problem)
        except DtqError as error:
            return _page_of(of_error(error))

    async def _turned_away(self, request: Request) -> Response | None:
        """Return the answer to who may not pass; None lets the request in."""
        path = path_in(request.scope)
        if path.startswith("/static/"):
            return None
        if request.method not in _SAFE:
            _check_same_page(request)
        if path in OPEN_PATHS:
            return None
        caller = await caller_of(request, self._keyring())
        if caller is None:
            return RedirectResponse(f"{root_of(request)}/sign-in", 303)
        if self._rates.take(caller.who):
            raise Problem(Kind.TOO_MANY, "you ask too often; wait a moment")
        request.scope.setdefault("state", {})["caller"] = caller
        return None


async def caller_of(request: Request, keyring: Keyring) -> Caller | None:
    """Return who has signed in; None for nobody.

    Raises:
        Problem: where no key is asked for, and this is no browser of this machine.
        RedisError: if the server cannot say which keys there are.
    """
    token = request.cookies.get(COOKIE, "")
    try:
        caller = await keyring.caller(f"Bearer {token}")
    except Problem as problem:
        if problem.kind is Kind.UNAUTHENTICATED:
            return None
        raise
    if caller is ANYBODY:
        _check_local(request)
    return caller


def _check_local(request: Request) -> None:
    """Where no key is asked for, serve browsers of this machine, under its own names only.

    A page of elsewhere may point a name of its own to this machine.
    """
    local = request.client is None or is_loopback(request.client.host)
    if not local or not is_loopback(request.url.hostname or ""):
        raise Problem(Kind.FORBIDDEN, "make an API key first: dtq keys create NAME --role admin")


def _check_same_page(request: Request) -> None:
    """Refuse what a page of elsewhere has a browser send."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    same = site in {None, "same-origin"} and _host_of(origin) in {"", request.headers.get("host")}
    if not same:
        raise Problem(Kind.FORBIDDEN, "this was sent by another page")


def _host_of(origin: str | None) -> str:
    if origin is None:
        return ""
    try:
        return urlsplit(origin).netloc or "null"
    except ValueError:
        return "null"


def path_in(scope: Scope) -> str:
    """Return the path inside the dashboard, wherever that is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def root_of(request: Request) -> str:
    """Return where the dashboard is mounted."""
    return str(request.scope.get("root_path", ""))


def _page_of(problem: Problem) -> Response:
    """A problem as plain text: it may hold what a stranger has sent."""
    text = f"{problem.kind.title}: {problem.detail}\n"
    return Response(text, int(problem.kind.status), problem.headers, "text/plain")


class _Guarded:
    """Sends an answer on, with the headers that all have."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send = send
        self._cached = path_in(scope).startswith("/static/")

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if not self._cached:
                headers["cache-control"] = "no-store"
        await self._send(message)
