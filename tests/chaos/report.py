"""The report of a run, in Markdown."""

from __future__ import annotations

import math
import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence

from chaos.plan import MACHINES, VISIBILITY_S, Kind
from chaos.run import PRODUCERS, Run
from chaos.site import REAPER_INTERVAL_S
from chaos.verdict import Verdict

_SHOWN = 20
_SHARES = (0, 0.5, 0.9, 0.99, 1)


def render(run: Run, plot: str) -> str:
    """Return the report.

    Args:
        run: what it is about.
        plot: the path of the picture, from where the report is kept.
    """
    parts = [
        "# Chaos report",
        _opening(run),
        f"![Throughput over time, and the faults]({plot})",
        "## What came of the tasks",
        _tasks(run),
        "## What ran more than once, and why",
        _repeats(run.verdict),
        "## How soon work started again",
        _recoveries(run.verdict),
        "## Faults",
        _faults(run),
        *_wrong(run.verdict),
    ]
    return "\n\n".join(parts) + "\n"


def _opening(run: Run) -> str:
    return (
        "Written by `make chaos`, which runs producers, workers, a scheduler and cancels, and hurts"
        " all of them.\nIts faults and its load are drawn from a seed: `make chaos"
        f" DURATION={run.duration_s:g} SEED={run.seed}` plans the same again. How the processes of"
        " a machine\ninterleave is not planned, so figures differ a little from run to run.\n\n"
        f"This run: {MACHINES} machines (supervisors with two worker processes each) and one"
        f" scheduler more, {PRODUCERS} producers, a\nRedis that writes every command to disk before"
        f" it answers, a visibility timeout of {VISIBILITY_S:g} s, a look of the reaper every"
        f" {REAPER_INTERVAL_S:g} s.\n{os.cpu_count()} cores, {platform.system()},"
        f" Python {platform.python_version()}."
    )


def _tasks(run: Run) -> str:
    verdict = run.verdict
    rows: list[tuple[str, object]] = [
        ("accepted", verdict.accepted),
        ("**lost**", f"**{len(verdict.lost)}**"),
        *((f"ended as `{status}`", n) for status, n in sorted(verdict.statuses.items())),
        ("submissions that ended in an error, so that the client cannot know", run.unsure),
        ("executions, counted outside dtq", verdict.executions),
        ("executions that nothing explains", len(verdict.unexplained)),
        ("executions after a client was told that the task is cancelled", len(verdict.revived)),
        ("other disagreements in the ledger", len(verdict.ledger.splitlines())),
    ]
    return _table(("tasks", "number"), rows)


def _repeats(verdict: Verdict) -> str:
    rows = verdict.repeats.most_common()
    again = sum(verdict.repeats.values())
    text = (
        f"{again} executions were not the first of their task. An attempt that was lost with its"
        " process is repeated: that is\nwhat at-least-once means."
    )
    return f"{text}\n\n{_table(('reason', 'executions'), rows)}"


def _recoveries(verdict: Verdict) -> str:
    text = (
        "From the kill of a process in which a handler ran, to the next start of that handler. A"
        " process that is killed\nunder a living supervisor is noticed at once; a machine, with its"
        " supervisor, when its leases have run out.\nOther faults may come in between."
    )
    rows = [
        (kind, len(times), *(f"{_share(times, share):.2f}" for share in _SHARES))
        for kind, times in sorted(verdict.recoveries.items())
    ]
    head = ("seconds after", "tasks", "shortest", "median", "p90", "p99", "longest")
    return f"{text}\n\n{_table(head, rows)}"


def _faults(run: Run) -> str:
    counts = Counter(fault.kind for fault in run.happened)
    return _table(("fault", "times"), [(kind, counts[kind]) for kind in Kind])


def _wrong(verdict: Verdict) -> list[str]:
    lines = [*verdict.lost, *verdict.unexplained, *verdict.revived, *verdict.ledger.splitlines()]
    if not lines:
        return []
    return ["## What is wrong", "```text\n" + "\n".join(lines[:_SHOWN]) + "\n```"]


def _share(times: Sequence[float], share: float) -> float:
    """The least time within which a share of them lies."""
    return sorted(times)[max(0, math.ceil(share * len(times)) - 1)]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [
        head,
        ["---", *["---:"] * (len(head) - 1)],
        *([str(cell) for cell in row] for row in rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
