"""What all actions of operators have in common: the role, the reason, and the way back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dtq_api.bodies import read_form
from dtq_client.requests import checked_reason
from dtq_core.api_keys import Role
from dtq_dashboard.door import root_of
from dtq_dashboard.pages import caller_in, problem_page

Act = Callable[[Request, str], Awaitable[str]]
"""Takes a request and the reason, and returns the page to go on to."""

_MOST_BYTES = 16_384


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        Problem: if it is refused.
    """
    limit_s = request.app.state.services.settings.api_read_timeout
    return await read_form(request, _MOST_BYTES, limit_s)


async def acted(request: Request, role: Role, act: Act) -> Response:
    """Do what a form asks for, and lead back to a page.

    Args:
        request: of the form.
        role: that the caller must be allowed.
        act: what is done; its problems become a page.
    """

    async def work() -> Response:
        caller_in(request).require(role)
        reason = checked_reason((await form_of(request)).get("reason", ""))
        return RedirectResponse(root_of(request) + await act(request, reason), 303)

    return await problem_page(request, work)
