"""The picture of a run: how many executions ended each second, and when there were faults."""

from __future__ import annotations

from collections import Counter

import pygal
from pygal.style import Style

from chaos.plan import Kind
from chaos.run import Run

_MOST_BINS = 300
_COLOURS = (
    *("#555555", "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b"),
    *("#e377c2", "#17becf", "#bcbd22", "#0b3d91", "#006d5b", "#a0522d"),
)
_LANE = 0.07
"""Height of the row of one kind of fault, of the highest throughput."""


def draw(run: Run) -> bytes:
    """Return an SVG picture."""
    curve = _throughput(run)
    top = max(rate for _, rate in curve)
    chart = pygal.XY(
        title=f"Executions a second, and faults (seed {run.seed})",
        x_title="seconds",
        width=1_200,
        height=760,
        margin_bottom=40,
        dots_size=3,
        legend_at_bottom=True,
        legend_at_bottom_columns=4,
        truncate_legend=-1,
        js=(),
        style=Style(colors=_COLOURS, legend_font_size=12),
    )
    chart.add("executions a second", curve, show_dots=False, stroke_style={"width": 2})
    for lane, kind in enumerate(Kind, start=1):
        height = top * (1 + lane * _LANE)
        chart.add(kind, _bars(run, kind, height), stroke_style={"width": 5})
    picture: bytes = chart.render()
    return picture


def _bars(run: Run, kind: Kind, height: float) -> list[tuple[float, float] | None]:
    """A line for as long as each fault lasted."""
    bars: list[tuple[float, float] | None] = []
    for fault in run.happened:
        if fault.kind is kind:
            bars += [(fault.begin_s, height), (fault.end_s, height), None]
    return bars


def _throughput(run: Run) -> list[tuple[float, float]]:
    """Time and rate, for at most so many equal parts of the run."""
    end_s = max([run.duration_s, *run.ended_s])
    width_s = max(1.0, end_s / _MOST_BINS)
    counts = Counter(int(at_s / width_s) for at_s in run.ended_s)
    bins = range(int(end_s / width_s) + 1)
    return [((number + 0.5) * width_s, counts[number] / width_s) for number in bins]
