"""Dead letters: searching them, requeueing and purging those that match, counted first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from dtq_client.operating.letters import Filter, discard, find_letters, letter_page, requeue
from dtq_client.queries.counters import dead_letters
from dtq_core.api_keys import Role
from dtq_core.store import Store
from dtq_dashboard.acts import Act, acted
from dtq_dashboard.door import root_of
from dtq_dashboard.pages import View, caller_in

_SHOWN = 50
_MOST_COUNTED = 10_000
"""So many are counted exactly; beyond, a page says that there are more."""


async def letters(request: Request) -> View:
    """Draw the dead letters that match, and how many there are."""
    asked = _asked(request.query_params)
    store = request.app.state.services.store
    wanted = _filter(request, asked)
    cursor = request.query_params.get("cursor") or None
    found = await run_in_threadpool(letter_page, store, wanted, _SHOWN, cursor)
    count = await run_in_threadpool(_count, store, wanted)
    given = urlencode({name: value for name, value in asked.items() if value})
    return View(
        "letters.html",
        "Dead letters",
        {
            "letters": found.letters,
            "wanted": asked,
            "given": given,
            "count": count,
            "over": count > _MOST_COUNTED and wanted != Filter(),
            "filtered": any(asked.values()),
            "more": _address(request, asked, found.next) if found.next else None,
        },
    )


def _asked(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(values.get(name, "")).strip() for name in ("queue", "task", "error")}


def _filter(request: Request, asked: Mapping[str, str]) -> Filter:
    queue = caller_in(request).queue_to_list(asked["queue"] or None)
    return Filter(queue=queue, task=asked["task"] or None, error=asked["error"] or None)


def _count(store: Store, wanted: Filter) -> int:
    """How many match: exactly where all do, otherwise up to a limit."""
    if wanted == Filter():
        return dead_letters(store)
    count = 0
    for _ in find_letters(store, wanted):
        count += 1
        if count > _MOST_COUNTED:
            break
    return count


def _address(request: Request, asked: Mapping[str, str], cursor: str) -> str:
    given = {name: value for name, value in {**asked, "cursor": cursor}.items() if value}
    return f"{root_of(request)}/dead-letters?{urlencode(given)}"


def _acting(work: Callable[..., object]) -> Act:
    async def act(request: Request, reason: str) -> str:
        asked = _asked(request.query_params)
        store, who = request.app.state.services.store, caller_in(request).who
        await run_in_threadpool(work, store, _filter(request, asked), who, reason)
        return "/dead-letters"

    return act


async def requeue_letters(request: Request) -> Response:
    """Run again what matches."""
    return await acted(request, Role.OPERATE, _acting(requeue))


async def purge_letters(request: Request) -> Response:
    """Remove for good what matches."""
    return await acted(request, Role.ADMIN, _acting(discard))
