"""Measures as they are added up, stored and read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq_core.measures import BUCKETS_S, MAX_KINDS, OTHERS, Histogram, Measures


@pytest.mark.parametrize(
    ("took_us", "bucket"),
    [(0, 0), (-5, 0), (1_000, 0), (1_001, 1), (2_500, 1), (1_800_000_000, 16), (10**10, 17)],
)
def test_a_duration_lies_in_the_first_bucket_whose_bound_it_does_not_exceed(
    took_us: int, bucket: int
) -> None:
    histogram = Histogram()
    histogram.add(took_us)
    assert histogram.counts.index(1) == bucket
    assert histogram.sum_us == max(0, took_us)


def test_the_buckets_of_prometheus_count_everything_that_is_no_longer() -> None:
    histogram = Histogram()
    for took_us in (500, 700, 3_000, 10**10):
        histogram.add(took_us)
    cumulated = dict(zip([*BUCKETS_S, None], histogram.cumulated, strict=True))
    assert [cumulated[bound] for bound in (0.001, 0.0025, 0.005, 1_800.0, None)] == [2, 2, 3, 3, 4]


NAME = st.text("abcdefgh_.-0123456789", min_size=1, max_size=8)


@given(
    st.lists(
        st.tuples(NAME, NAME, st.sampled_from(["succeeded", "failed"]), st.integers(0, 10**10)),
        max_size=20,
    )
)
def test_what_several_workers_tell_adds_up_to_what_one_would_have_told(
    attempts: list[tuple[str, str, str, int]],
) -> None:
    one, several, stored = Measures(), [Measures(), Measures()], {}
    for number, (queue, task, outcome, took_us) in enumerate(attempts):
        for measures in (one, several[number % 2]):
            found = measures.of(queue, task)
            found.ended[outcome] = found.ended.get(outcome, 0) + 1
            found.waited.add(took_us)
            found.ran.add(took_us // 2)
            measures.took("finish", took_us)
            measures.leases_lost += 1
    for measures in several:
        for name, value in measures.fields():
            stored[name] = stored.get(name, 0) + value
    assert stored == dict(one.fields())
    again = Measures.from_fields({name: str(value) for name, value in stored.items()})
    assert dict(again.fields()) == stored


def test_queues_and_tasks_without_end_are_counted_together() -> None:
    measures = Measures()
    for number in range(MAX_KINDS + 50):
        measures.of("default", f"task{number}").ended["succeeded"] = 1
    assert len(measures.attempts) == MAX_KINDS + 1
    assert (OTHERS, OTHERS) in measures.attempts


@pytest.mark.parametrize(
    "field",
    [
        *("", "attempt", "attempt q t ended", "attempt q t waited x", "attempt q t waited 99"),
        *("attempt q t waited ²", "call finish took -1", "leases", "attempt q t ran 1 2"),
    ],
)
def test_fields_of_strangers_and_later_versions_are_left_out(field: str) -> None:
    assert list(Measures.from_fields({field: "7"}).fields()) == []


@pytest.mark.parametrize("value", ["", "-1", "1.5", "x", "²"])
def test_values_of_strangers_are_left_out(value: str) -> None:
    assert list(Measures.from_fields({"leases lost": value}).fields()) == []
