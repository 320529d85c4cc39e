"""How a page is answered: as a whole, and then as a stream of what has changed in it.

A page is a function that returns a template and what it needs. A browser asks for it twice: once
for the document, and once, as an event source, for its main part, which is drawn again every few
seconds and sent where it differs from what was sent last. So every page is live, by one script.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import structlog
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from dtq_api.keyring import Caller
from dtq_api.problems import Kind, Problem, of_error
from dtq_core.api_keys import Role
from dtq_core.errors import DtqError
from dtq_dashboard.door import root_of

_log = structlog.get_logger("dtq.dashboard")

DRAW_EVERY_S = 2.0
_HERE = Path(__file__).parent


class Entry(NamedTuple):
    """A page in the navigation: its address, name, the key that leads to it, and who may see it."""

    address: str
    name: str
    key: str
    role: Role | None = None


PAGES = (
    Entry("/", "Overview", "o"),
    Entry("/queues", "Queues", "q"),
    Entry("/tasks", "Tasks", "t"),
    Entry("/dead-letters", "Dead letters", "d"),
    Entry("/workers", "Workers", "w"),
    Entry("/schedules", "Schedules", "s"),
    Entry("/audit", "Audit", "a", Role.ADMIN),
)


class View(NamedTuple):
    """What is to be drawn.

    Attributes:
        template: its file.
        title: of the page.
        values: what the template needs.
    """

    template: str
    title: str
    values: dict[str, Any]


Draw = Callable[[Request], Awaitable[View]]

_templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """Return a template with its values filled in; whatever they hold is text."""
    return _templates.get_template(template).render(**values)


def page(draw: Draw) -> Callable[[Request], Awaitable[Response]]:
    """Return the route of a page."""

    async def answer(request: Request) -> Response:
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(_changes(request, draw), media_type="text/event-stream")

        async def whole() -> Response:
            return _whole(request, await draw(request))

        return await problem_page(request, whole)

    return answer


async def problem_page(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
    """Return the answer of some work, or a page that tells of the problem that it met."""
    try:
        return await work()
    except Problem as problem:
        met = problem
    except DtqError as error:
        met = of_error(error)
    except Exception:
        _log.exception("a page met a fault", path=request.url.path)
        met = Problem(Kind.INTERNAL, "the fault is in the log")
    return _whole(request, _trouble(met), int(met.kind.status))


async def _changes(request: Request, draw: Draw) -> AsyncIterator[str]:
    """The main part of a page, each time it differs."""
    keyring = request.app.state.services.keyring
    sent = ""
    while await keyring.lives(caller_in(request)):
        try:
            text = _main(request, await draw(request))
        except Problem as problem:
            text = _main(request, _trouble(problem))
        except DtqError as error:
            text = _main(request, _trouble(of_error(error)))
        print_of = hashlib.sha256(text.encode()).hexdigest()
        if print_of != sent:
            sent = print_of
            yield "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
        else:
            yield ": nothing new\n\n"
        await asyncio.sleep(DRAW_EVERY_S)


def caller_in(request: Request) -> Caller:
    """Return who has signed in, as the door has found."""
    caller: Caller = request.state.caller
    return caller


def may(request: Request, role: Role) -> bool:
    """Tell whether who has signed in may do what a role is for."""
    key = caller_in(request).key
    return key is None or key.allows(role)


def _trouble(problem: Problem) -> View:
    return View("trouble.html", problem.kind.title, {"detail": problem.detail})


def _whole(request: Request, view: View, status: int = 200) -> HTMLResponse:
    key = caller_in(request).key
    text = render(
        "page.html",
        root=root_of(request),
        title=view.title,
        main=Markup(_main(request, view)),  # drawn by us, with every value escaped
        path=request.url.path,
        pages=[one for one in PAGES if one.role is None or may(request, one.role)],
        who=None if key is None else key.name,
    )
    return HTMLResponse(text, status)


def _main(request: Request, view: View) -> str:
    return render(
        view.template,
        root=root_of(request),
        title=view.title,
        operator=may(request, Role.OPERATE),
        admin=may(request, Role.ADMIN),
        **view.values,
    )


def _count(value: float) -> str:
    return f"{value:,}"


def _seconds(value: float | None) -> str:
    """A duration in its two largest units."""
    if value is None:
        return ""
    if value < 10:
        return f"{value:.2g} s"
    for unit, size, smaller, part in (
        ("d", 86_400, "h", 3_600),
        ("h", 3_600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if value >= size:
            return f"{value // size:.0f} {unit} {value % size // part:.0f} {smaller}"
    return f"{value:.0f} s"


_templates.filters.update(count=_count, seconds=_seconds)
