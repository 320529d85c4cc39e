"""From samples to figures and rates."""

from __future__ import annotations

from typing import Any

import pytest

from dtq_client.queries.rates import Longest, Sample, Window, figures
from dtq_core.clock import rfc3339
from dtq_core.reads import QueueInfo, WorkerInfo
from support.queues import queue

START_MS = 1_800_000_000_000


def worker(
    name: str, seen_s: float, *running: dict[str, Any], count: int | None = None
) -> WorkerInfo:
    return WorkerInfo(
        id=name,
        seen_at=rfc3339(START_MS + round(seen_s * 1000)),
        host="host",
        pid=1,
        started_at=rfc3339(START_MS),
        queues=["default"],
        tasks=["add"],
        concurrency=8,
        running_count=len(running) if count is None else count,
        running=list(running),
    )


def sample(at_s: float, *queues: QueueInfo, workers: tuple[WorkerInfo, ...] = ()) -> Sample:
    return Sample(START_MS + round(at_s * 1000), queues, workers, {}, [], None)


def test_a_rate_is_the_difference_of_counters_over_the_time_between() -> None:
    before = sample(0, queue("a", succeeded=10, failed=5, queued=100), queue("b", cancelled=1))
    now = sample(4, queue("a", succeeded=16, failed=7, queued=3), queue("b", cancelled=1))
    found = figures(before, now)
    assert found.over_seconds == 4
    assert found.ended_per_second == 2
    assert [q.ended_per_second for q in found.queues] == [2, 0]
    assert found.tasks["SUCCEEDED"] == 16
    assert found.queues[0].tasks["QUEUED"] == 3


def test_every_way_to_end_counts() -> None:
    ended = dict.fromkeys(["succeeded", "failed", "dead_lettered", "cancelled", "expired"], 1)
    found = figures(sample(0, queue("a")), sample(1, queue("a", **ended)))
    assert found.ended_per_second == 5


def test_a_first_sample_has_no_rates() -> None:
    found = figures(None, sample(0, queue("a", succeeded=10)))
    assert found.over_seconds is None
    assert found.ended_per_second is None
    assert found.queues[0].ended_per_second is None
    assert found.at == rfc3339(START_MS)


def test_a_queue_that_is_new_began_with_nothing() -> None:
    found = figures(sample(0), sample(2, queue("new", succeeded=6)))
    assert found.queues[0].ended_per_second == 3


def test_dead_letters_that_go_back_take_nothing_from_what_ended() -> None:
    before = sample(0, queue("a", succeeded=10, dead_lettered=50))
    found = figures(before, sample(1, queue("a", succeeded=14, dead_lettered=20)))
    assert found.ended_per_second == 4


@pytest.mark.parametrize("at_s", [5, 3])
def test_a_clock_that_stood_still_or_was_set_back_gives_no_rates(at_s: float) -> None:
    found = figures(sample(5, queue("a")), sample(at_s, queue("a", succeeded=1)))
    assert found.over_seconds is None
    assert found.ended_per_second is None


def test_a_window_compares_with_the_oldest_sample_in_it() -> None:
    window = Window(10)
    over = [window.add(sample(at_s, queue("a", succeeded=at_s * 2))) for at_s in range(0, 30, 3)]
    assert [found.over_seconds for found in over] == [None, 3, 6, 9, 9, 9, 9, 9, 9, 9]
    assert [found.ended_per_second for found in over[1:]] == [2] * 9


def test_a_window_shorter_than_the_interval_compares_with_the_sample_before() -> None:
    window = Window(0)
    over = [window.add(sample(at_s)).over_seconds for at_s in (0, 1, 61)]
    assert over == [None, 1, 60]


def test_a_worker_is_shown_with_what_it_runs_longest() -> None:
    tasks = [
        {"id": "2", "name": "later", "since_ms": START_MS + 9_000},
        {"id": "1", "name": "first", "since_ms": START_MS + 4_000},
    ]
    busy, idle = worker("w-1", 8, *tasks, count=7), worker("w-2", 10.5)
    found = figures(None, sample(10, workers=(busy, idle))).workers
    assert (found[0].running, found[0].concurrency) == (7, 8)
    assert found[0].longest == Longest("1", "first", 6.0)
    assert found[0].beat_seconds == 2
    assert found[1].longest is None
    assert found[1].beat_seconds == 0, "seen after the sample began"
