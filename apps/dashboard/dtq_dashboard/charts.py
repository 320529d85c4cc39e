"""Lines over time, as the points of an SVG that a template draws. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 300, 60


class Chart(NamedTuple):
    """What a template draws.

    Attributes:
        title: what it shows.
        newest: the last value, as text.
        highest: the largest value, as text.
        points: of the line, in a box of ``WIDTH`` and ``HEIGHT``; empty where nothing is known yet.
    """

    title: str
    newest: str
    highest: str
    points: str


def chart(title: str, values: Sequence[float], unit: str = "") -> Chart:
    """Return the chart of some values at equal distances; 0 is at the bottom."""
    if not values:
        return Chart(title, "", "", "")
    highest = max(values)
    step = WIDTH / max(1, len(values) - 1)
    scale = (HEIGHT - 2) / highest if highest else 0.0
    points = " ".join(
        f"{index * step:.1f},{HEIGHT - 1 - value * scale:.1f}" for index, value in enumerate(values)
    )
    return Chart(title, _text(values[-1], unit), _text(highest, unit), points)


def _text(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.2g}"
    return f"{number} {unit}".strip()
