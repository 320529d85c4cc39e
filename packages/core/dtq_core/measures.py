"""What workers measure of the attempts they run, and how it is stored. Pure.

Each worker adds up for a few seconds, then adds its sums to one hash of counters that only grow
(``P:measures`` of the first partition). So a task costs nothing in Redis, and whoever asks need not
know the workers; one that is killed takes the last seconds of its measures with it.

A field is made of words, none of which holds a space:

``attempt QUEUE TASK ended OUTCOME``    attempts that ended so
``attempt QUEUE TASK waited BUCKET``    how long they had waited for a worker, ``sum`` in µs
``attempt QUEUE TASK ran BUCKET``       how long they ran, the same
``call SCRIPT took BUCKET``             how long a round trip of a script took, the same
``leases lost``                         leases that were lost while their handler ran
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

BUCKETS_S = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0),
)
"""Upper bounds, in seconds; one bucket more holds what is longer."""
UNKNOWN_TASK = "(unknown)"
"""Stands for all names that no worker knew: they are no limited set. No task has this name."""
MAX_KINDS = 1_000
"""Pairs of queue and task that are told apart; further ones are counted as :data:`OTHERS`."""
OTHERS = "(others)"

_BOUNDS_US = [round(bound * 1_000_000) for bound in BUCKETS_S]
_SUM = "sum"
_LOST = "leases lost"


class Histogram:
    """How many of some durations lie in each bucket, and their sum.

    Attributes:
        counts: for each bound how many lie between it and the one before; then those beyond all.
        sum_us: of all durations, in microseconds.
    """

    __slots__ = ("counts", "sum_us")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_US) + 1)
        self.sum_us = 0

    def add(self, took_us: int) -> None:
        """Take a duration, in microseconds; a clock that was set back makes it 0."""
        took_us = max(0, took_us)
        self.counts[bisect_left(_BOUNDS_US, took_us)] += 1
        self.sum_us += took_us

    @property
    def cumulated(self) -> list[int]:
        """How many are no longer than each bound; at last, all."""
        return list(accumulate(self.counts))

    def words(self) -> Iterator[tuple[str, int]]:
        """Each bucket that is not empty, and the sum, as the last word of a field and its value."""
        for index, count in enumerate(self.counts):
            if count:
                yield str(index), count
        if self.sum_us:
            yield _SUM, self.sum_us

    def take_word(self, word: str, value: int) -> None:
        """Add what :meth:`words` says; a bucket of another version is left out."""
        if word == _SUM:
            self.sum_us += value
        elif word.isascii() and word.isdigit() and int(word) < len(self.counts):
            self.counts[int(word)] += value


@dataclass
class Attempts:
    """What was measured of the attempts of one task in one queue.

    Attributes:
        ended: how many ended in each way.
        waited: from the time they were queued until a worker took them.
        ran: from there to the end of the handler.
    """

    ended: dict[str, int] = field(default_factory=dict)
    waited: Histogram = field(default_factory=Histogram)
    ran: Histogram = field(default_factory=Histogram)


@dataclass
class Measures:
    """All that was measured: by one worker in a few seconds, or by all of them ever.

    Attributes:
        attempts: by queue and task.
        calls: round trips, by script.
        leases_lost: while their handler ran.
    """

    attempts: dict[tuple[str, str], Attempts] = field(default_factory=dict)
    calls: dict[str, Histogram] = field(default_factory=dict)
    leases_lost: int = 0

    def of(self, queue: str, task: str) -> Attempts:
        """Return where attempts of a task are counted."""
        found = self.attempts.get((queue, task))
        if found is None:
            if len(self.attempts) >= MAX_KINDS:
                queue = task = OTHERS
            found = self.attempts.setdefault((queue, task), Attempts())
        return found

    def took(self, script: str, took_us: int) -> None:
        """Take the duration of a round trip, in microseconds."""
        self.calls.setdefault(script, Histogram()).add(took_us)

    def fields(self) -> Iterator[tuple[str, int]]:
        """Each field that is not 0, and its value."""
        for (queue, task), attempts in self.attempts.items():
            start = f"attempt {queue} {task}"
            for outcome, count in attempts.ended.items():
                yield f"{start} ended {outcome}", count
            for name, histogram in (("waited", attempts.waited), ("ran", attempts.ran)):
                for word, value in histogram.words():
                    yield f"{start} {name} {word}", value
        for script, histogram in self.calls.items():
            for word, value in histogram.words():
                yield f"call {script} took {word}", value
        if self.leases_lost:
            yield _LOST, self.leases_lost

    @classmethod
    def from_fields(cls, fields: Mapping[str, str]) -> Measures:
        """Read what is stored; a field that is none of ours is left out."""
        found = cls()
        for name, text in fields.items():
            if text.isascii() and text.isdigit():
                found._take(name, int(text))
        return found

    def _take(self, name: str, value: int) -> None:
        match name.split(" "):
            case ["attempt", queue, task, "ended", outcome]:
                ended = self.of(queue, task).ended
                ended[outcome] = ended.get(outcome, 0) + value
            case ["attempt", queue, task, "waited", word]:
                self.of(queue, task).waited.take_word(word, value)
            case ["attempt", queue, task, "ran", word]:
                self.of(queue, task).ran.take_word(word, value)
            case ["call", script, "took", word]:
                self.calls.setdefault(script, Histogram()).take_word(word, value)
            case ["leases", "lost"]:
                self.leases_lost += value
