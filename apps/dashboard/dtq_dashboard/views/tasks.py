"""Tasks: searching them, one of them with its past, cancelling, requeueing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dtq_api.keyring import Caller
from dtq_api.problems import Kind, Problem
from dtq_client.operating.cancelling import cancel
from dtq_client.operating.letters import Filter, requeue
from dtq_client.queries.counters import known_queues
from dtq_client.queries.events import events_of
from dtq_client.queries.tasks import Wanted, find_tasks
from dtq_core import codec, reads
from dtq_core.api_keys import Role
from dtq_core.errors import EncodingError, InputError, TaskNotFoundError
from dtq_core.limits import check_task_id
from dtq_core.record import TaskInfo
from dtq_core.states import Status
from dtq_dashboard.acts import acted
from dtq_dashboard.door import root_of
from dtq_dashboard.pages import View, caller_in, page

_SHOWN = 50
_MOST_STEPS = 100
"""A page is drawn again and again: it says that it has not looked at all, rather than take long."""
_MOST_SHOWN_CHARS = 20_000
"""Of arguments and results: enough to see what they are, and no page takes seconds to draw."""


async def tasks(request: Request) -> Response:
    """Lead to the task whose id was asked for, or show those that match."""
    asked = request.query_params.get("id", "").strip()
    if asked:
        return RedirectResponse(f"{root_of(request)}/tasks/{_id_of(asked)}", 303)
    return await page(_list)(request)


def _id_of(text: str) -> str:
    try:
        return check_task_id(text)
    except InputError:
        return "unknown"


async def _list(request: Request) -> View:
    asked = {
        name: request.query_params.get(name, "").strip()
        for name in ("status", "queue", "name", "before")
    }
    store = request.app.state.services.store
    queue = caller_in(request).queue_to_list(asked["queue"] or None)
    found = await run_in_threadpool(find_tasks, store, _wanted(asked, queue), _SHOWN, _MOST_STEPS)
    names = await run_in_threadpool(known_queues, store)
    older = {**asked, "before": found.tasks[-1].id} if found.more else None
    newest = {**asked, "before": ""} if asked["before"] else None
    return View(
        "tasks.html",
        "Tasks",
        {
            "tasks": found.tasks,
            "wanted": asked,
            "all_statuses": list(Status),
            "queues": sorted(filter(caller_in(request).reaches, names)),
            "filtered": any(asked.values()),
            "older": _address(request, older),
            "newest": _address(request, newest),
            "complete": found.complete,
            "unseen_before": found.unseen_before,
        },
    )


def _wanted(asked: Mapping[str, str], queue: str | None) -> Wanted:
    status = asked["status"].upper()
    if status and status not in set(Status):
        raise Problem(Kind.INVALID, "there is no such status")
    before = _id_of(asked["before"]) if asked["before"] else None
    return Wanted([Status(status)] if status else (), queue, asked["name"] or None, before)


def _address(request: Request, asked: Mapping[str, str] | None) -> str | None:
    if asked is None:
        return None
    given = urlencode({name: value for name, value in asked.items() if value})
    return f"{root_of(request)}/tasks" + (f"?{given}" if given else "")


async def task(request: Request) -> View:
    """Draw one task."""
    services = request.app.state.services
    info = await _task(request)
    keys = services.client.store.keys_of(info.id)
    payload = await services.client.store.read(reads.payload(keys, info.id))
    outcome = await services.client.store.read(reads.outcome(keys, info.id))
    events, _ = await run_in_threadpool(events_of, services.store, info)
    result = outcome.result if outcome and info.status is Status.SUCCEEDED else None
    return View(
        "task.html",
        info.name or "Task",
        {
            "task": info,
            "times": [
                ("Submitted", info.submitted_at),
                ("Due", info.due_at),
                ("Queued", info.queued_at),
                ("Started", info.started_at),
                ("Finished", info.finished_at),
                ("Expires", info.expires_at),
                ("Cancelling asked for", info.cancel_requested_at),
            ],
            "progress": None if info.progress is None else _shown(info.progress),
            "arguments": _arguments(payload.args, payload.kwargs),
            "result": None if result is None else _result(result),
            "attempts": await services.client.attempts(info.id),
            "events": events,
        },
    )


def _arguments(args: list[Any] | None, kwargs: dict[str, Any] | None) -> str:
    if args is None or kwargs is None:
        return "(cannot be read)"
    if not args and not kwargs:
        return "(none)"
    return _shown({"args": args, "kwargs": kwargs})


def _result(text: bytes) -> str:
    try:
        return _shown(codec.decode(text, "result"))
    except EncodingError:
        return "(cannot be read)"


def _shown(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    if len(text) <= _MOST_SHOWN_CHARS:
        return text
    return f"{text[:_MOST_SHOWN_CHARS]}\n… and {len(text) - _MOST_SHOWN_CHARS:,} characters more"


async def cancel_task(request: Request) -> Response:
    """Cancel a task."""
    return await acted(request, Role.OPERATE, _cancel)


async def requeue_task(request: Request) -> Response:
    """Run a failed task again."""
    return await acted(request, Role.OPERATE, _requeue)


async def _cancel(request: Request, reason: str) -> str:
    info, store = await _task(request), request.app.state.services.store
    await run_in_threadpool(cancel, store, info.id, caller_in(request).who, reason)
    return f"/tasks/{info.id}"


async def _requeue(request: Request, reason: str) -> str:
    info, store = await _task(request), request.app.state.services.store
    meant = Filter(ids=[info.id])
    await run_in_threadpool(requeue, store, meant, caller_in(request).who, reason)
    return f"/tasks/{info.id}"


async def _task(request: Request) -> TaskInfo:
    """Return the task of the address; one that the caller does not reach is none."""
    caller: Caller = caller_in(request)
    task_id = request.path_params["task_id"]
    try:
        info: TaskInfo = await request.app.state.services.client.get(task_id)
    except InputError:
        raise TaskNotFoundError(task_id) from None
    if not caller.reaches(info.queue):
        raise TaskNotFoundError(task_id)
    return info
