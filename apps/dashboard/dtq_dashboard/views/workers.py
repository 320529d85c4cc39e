"""Workers, and what each runs now and since when."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from dtq_client.queries.counters import live_workers
from dtq_core.clock import rfc3339
from dtq_core.reads import WorkerInfo
from dtq_dashboard.pages import View, caller_in


async def workers(request: Request) -> View:
    """Draw the live workers."""
    caller_in(request).require_all_queues()
    found = await run_in_threadpool(live_workers, request.app.state.services.store)
    return View("workers.html", "Workers", {"workers": list(map(_shown, found))})


def _shown(worker: WorkerInfo) -> dict[str, Any]:
    running = [{**task, "since": rfc3339(task["since_ms"])} for task in worker.running]
    return {**msgspec.structs.asdict(worker), "running": running}
