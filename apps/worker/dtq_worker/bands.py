"""In which order a worker reads the bands of its queues. Pure, but for the chance it is given.

strict    critical before high before normal before low, but of 16 claims one each begins with high,
          normal and low, so that nothing starves.
weighted  drawn anew for each claim, with the weights 8, 4, 2, 1.

Queues take turns: each claim begins with the next one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from dtq_core.calls import Band as QueueBand
from dtq_core.limits import Band

WEIGHTS = {Band.CRITICAL: 8, Band.HIGH: 4, Band.NORMAL: 2, Band.LOW: 1}
CYCLE = 16
_LED_BY = {4: Band.HIGH, 9: Band.NORMAL, 14: Band.LOW}
"""Of a cycle of claims, those that a lower band leads."""


class BandOrder:
    """Yields the order for one claim after another."""

    def __init__(self, queues: Sequence[str], mode: str, chance: random.Random) -> None:
        """Set up for some queues.

        Args:
            queues: their names.
            mode: ``strict`` or ``weighted``.
            chance: where ``weighted`` draws from.
        """
        self._queues = list(queues)
        self._mode = mode
        self._chance = chance
        self._claims = 0

    def next(self) -> list[QueueBand]:
        """Return every (queue, band), the one to be read first at the head."""
        turn = self._claims % len(self._queues)
        queues = self._queues[turn:] + self._queues[:turn]
        bands = self._weighted() if self._mode == "weighted" else self._strict()
        self._claims += 1
        return [(queue, band) for band in bands for queue in queues]

    def plain(self) -> list[QueueBand]:
        """Return every (queue, band), the most urgent first; no turn is used up."""
        return [(queue, band) for band in Band for queue in self._queues]

    def _strict(self) -> list[Band]:
        leader = _LED_BY.get(self._claims % CYCLE)
        return list(Band) if leader is None else sorted(Band, key=lambda band: band is not leader)

    def _weighted(self) -> list[Band]:
        """A weighted shuffle: keys u^(1/w), largest first (Efraimidis and Spirakis, 2006)."""
        keys = {band: self._chance.random() ** (1 / weight) for band, weight in WEIGHTS.items()}
        return sorted(Band, key=lambda band: -keys[band])
