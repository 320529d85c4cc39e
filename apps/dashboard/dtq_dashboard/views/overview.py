"""The overview: what happens now, and what happened in the last hour."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from dtq_client.queries.counters import dead_letters, unserved
from dtq_core.states import WAITING, Status
from dtq_dashboard.charts import Chart, chart
from dtq_dashboard.history import History
from dtq_dashboard.pages import View, caller_in


async def overview(request: Request) -> View:
    """Draw the overview."""
    caller_in(request).require_all_queues()
    state = request.app.state
    history: History = state.history
    sample, found = await history.now()
    letters = await run_in_threadpool(dead_letters, state.services.store)
    warnings = [
        f"Tasks wait in {queue}, and no live worker serves it."
        for queue in sorted(unserved(sample.queues, sample.workers))
    ]
    if not found.leaders and found.tasks[Status.SCHEDULED] + found.tasks[Status.RETRYING]:
        warnings.append("No scheduler leads: delayed tasks and retries stand still.")
    return View(
        "overview.html",
        "Overview",
        {
            "ended": "…" if found.ended_per_second is None else f"{found.ended_per_second:,.1f}",
            "waiting": sum(found.tasks[status] for status in WAITING),
            "running": found.tasks[Status.RUNNING],
            "oldest": found.oldest_waiting.seconds if found.oldest_waiting else None,
            "letters": letters,
            "slots": sum(worker.concurrency for worker in found.workers),
            "busy": sum(worker.running for worker in found.workers),
            "workers": len(found.workers),
            "warnings": warnings,
            "charts": _charts(history),
            "statuses": list(found.tasks.items()),
            "empty": not found.queues,
        },
    )


def _charts(history: History) -> list[Chart]:
    moments = history.moments
    return [
        chart("Ended", [moment.ended for moment in moments], "a second"),
        chart("Failed for good", [moment.failed for moment in moments], "a second"),
        chart("Waiting", [moment.waiting for moment in moments]),
        chart("Running", [moment.running for moment in moments]),
        chart("Oldest waiting", [moment.oldest_s for moment in moments], "s"),
        chart("Start latency, p99", [moment.latency_s * 1000 for moment in moments], "ms"),
    ]
