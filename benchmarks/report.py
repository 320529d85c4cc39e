"""Write what ``compare.py --json docs/performance.json`` found into the docs: tables and plots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pygal
from pygal.style import Style

from recovery import PATIENCE_S

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
FIGURES = DOCS / "performance.json"
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
PLOTS = {
    "drain": (
        "Drain with results stored, tasks/s",
        {"1 process": "drain, 1 process, tasks/s", "2 processes": "drain, 2 processes, tasks/s"},
    ),
    "submit": (
        "Submission, tasks/s",
        {"one by one": "submit, tasks/s", "many": "submit many, tasks/s"},
    ),
    "latency": (
        "Start latency of an idle worker, ms (logarithmic)",
        {"p50": "start latency idle, p50 ms", "p99": "start latency idle, p99 ms"},
    ),
    "cpu": (
        "CPU, µs/task",
        {"worker": "worker CPU, µs/task", "Redis": "Redis CPU, µs/task"},
    ),
}


def section(found: dict[str, Any]) -> str:
    """Return the part of the page that stands between the marks."""
    conditions = "; ".join(f"{name}: {value}" for name, value in found["conditions"].items())
    names = list(found["figures"])
    measures = list(found["figures"]["dtq"])
    lines = [f"Conditions: {conditions}.", ""]
    lines += [f"| measure | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for measure in measures:
        values = (_text(found["figures"][name].get(measure)) for name in names)
        lines.append(f"| {measure} | {' | '.join(values)} |")
    lines += ["", *(f"![{title}](images/peers-{key}.svg)" for key, (title, _) in PLOTS.items())]
    lines += ["", "| system | version | acknowledges | set up with |", "|---|---|---|---|"]
    for system in found["systems"]:
        acknowledges = f"{system['acknowledges']} the handler runs"
        if system["acknowledges"] == "before":
            acknowledges = f"**{acknowledges}**"
        row = (system["name"], system["version"], acknowledges, system["setting"])
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    if value == float("inf"):
        return f"not within {PATIENCE_S}"
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def draw(title: str, series: dict[str, str], figures: dict[str, dict[str, float]]) -> bytes:
    """Return a picture of bars, one group for each system."""
    chart = pygal.Bar(
        title=title,
        width=1_000,
        height=420,
        legend_at_bottom=True,
        logarithmic="logarithmic" in title,
        js=(),
        style=Style(colors=("#1f77b4", "#ff7f0e")),
    )
    chart.x_labels = list(figures)
    for label, measure in series.items():
        chart.add(label, [of_one.get(measure) for of_one in figures.values()])
    picture: bytes = chart.render()
    return picture


def main() -> None:
    found = json.loads(FIGURES.read_text("utf-8"))
    for key, (title, series) in PLOTS.items():
        picture = draw(title, series, found["figures"])
        (DOCS / "images" / f"peers-{key}.svg").write_bytes(picture)
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{section(found)}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
