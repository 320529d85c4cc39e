"""What operators did, the newest first."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from dtq_client.queries.audit import newest_acts
from dtq_core.api_keys import Role
from dtq_dashboard.pages import View, caller_in

_SHOWN = 200


async def audit(request: Request) -> View:
    """Draw the audit log."""
    caller_in(request).require(Role.ADMIN)
    caller_in(request).require_all_queues()
    acts = await run_in_threadpool(newest_acts, request.app.state.services.store, _SHOWN)
    return View("audit.html", "Audit", {"acts": acts[::-1]})
