"""Signing in with an API key, and out again.

The cookie is the key's token itself: every process that serves the dashboard knows it, and it is
good for nothing from the second in which the key is revoked. No script can read it, and no page of
elsewhere can have it sent.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dtq_api.problems import Kind, Problem
from dtq_core.api_keys import Role
from dtq_dashboard.acts import form_of
from dtq_dashboard.door import COOKIE, caller_of, root_of
from dtq_dashboard.pages import render

_DAY_S = 86_400


async def show(request: Request) -> Response:
    """Ask for a key."""
    keyring = request.app.state.services.keyring
    if await caller_of(request, keyring) is not None:
        return RedirectResponse(f"{root_of(request)}/", 303)
    return _form(request, "")


async def sign_in(request: Request) -> Response:
    """Take a key, and keep it in a cookie."""
    token = (await form_of(request)).get("token", "").strip()
    try:
        caller = await request.app.state.services.keyring.caller(f"Bearer {token}")
    except Problem as problem:
        if problem.kind is not Kind.UNAUTHENTICATED:
            raise
        return _form(request, "This is no live API key.", 401)
    if caller.key is not None and not caller.key.allows(Role.READ):
        return _form(request, "This key may not read: it needs another role.", 403)
    answer = RedirectResponse(f"{root_of(request)}/", 303)
    answer.set_cookie(
        COOKIE,
        token,
        max_age=_DAY_S,
        path=root_of(request) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


async def sign_out(request: Request) -> Response:
    """Forget the key."""
    answer = RedirectResponse(f"{root_of(request)}/sign-in", 303)
    answer.delete_cookie(COOKIE, path=root_of(request) or "/")
    return answer


def _form(request: Request, problem: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(render("sign_in.html", root=root_of(request), problem=problem), status)
