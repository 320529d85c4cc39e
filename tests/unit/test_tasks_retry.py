from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtq_core.errors import InvalidOptionError
from dtq_core.limits import MAX_DURATION_S
from dtq_tasks import exponential, fixed, linear
from dtq_tasks.retry import as_policy

durations = st.floats(0, MAX_DURATION_S) | st.integers(0, MAX_DURATION_S)
factors = st.floats(1, allow_infinity=False) | st.integers(1, 10**400)
attempts = st.integers(1, 10**6)


@given(durations, factors, durations, attempts, attempts)
@example(1, 10, 300, 4000, 10**6)
@example(5e-324, sys.float_info.max, MAX_DURATION_S, 1, 2)
@example(0, 10, 300, 1, 4000)
def test_exponential_grows_up_to_its_cap(
    base: float, factor: float, cap: float, one: int, other: int
) -> None:
    policy = exponential(base, factor, cap, jitter=False)
    earlier, later = sorted((one, other))
    assert 0 <= policy(earlier) <= policy(later) <= cap
    assert policy(1) == min(base, cap)


@given(durations, durations, attempts, attempts)
def test_linear_grows_up_to_its_cap(step: float, cap: float, one: int, other: int) -> None:
    policy = linear(step, cap, jitter=False)
    earlier, later = sorted((one, other))
    assert 0 <= policy(earlier) <= policy(later) <= cap


@given(durations, factors, durations, attempts)
def test_jitter_keeps_between_half_the_delay_and_all_of_it(
    base: float, factor: float, cap: float, attempt: int
) -> None:
    for steady, jittered in (
        (exponential(base, factor, cap, False), exponential(base, factor, cap, True)),
        (linear(base, cap, False), linear(base, cap, True)),
        (fixed(base, False), fixed(base, True)),
    ):
        assert steady(attempt) / 2 <= jittered(attempt) <= steady(attempt)


def test_jitter_spreads() -> None:
    policy = fixed(100, jitter=True)
    assert len({policy(1) for _ in range(20)}) > 10


def test_the_delays_as_documented() -> None:
    assert [exponential(1, 2, 10, jitter=False)(n) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]
    assert [linear(2, 5, jitter=False)(n) for n in range(1, 5)] == [2, 4, 5, 5]
    assert [fixed(3)(n) for n in range(1, 4)] == [3, 3, 3]
    assert [as_policy([1, 5])(n) for n in range(1, 5)] == [1, 5, 5, 5]
    assert as_policy((7,))(10**6) == 7
    assert as_policy(lambda attempt: attempt * 10)(3) == 30


def test_a_list_changed_later_changes_no_policy() -> None:
    delays = [1.0]
    policy = as_policy(delays)
    delays.append(-1)
    assert policy(2) == 1


bad_durations = [-1, math.nan, math.inf, MAX_DURATION_S + 1, "1", None, True]


@pytest.mark.parametrize("bad", bad_durations)
@pytest.mark.parametrize(
    "make",
    [
        lambda bad: exponential(base=bad),
        lambda bad: exponential(cap=bad),
        lambda bad: linear(step=bad),
        lambda bad: linear(1, cap=bad),
        fixed,
        lambda bad: as_policy([1, bad]),
        lambda bad: as_policy(lambda _: bad),
    ],
)
def test_a_wrong_duration_is_refused_at_once(make: Callable[[Any], Any], bad: Any) -> None:
    with pytest.raises(InvalidOptionError):
        make(bad)


@pytest.mark.parametrize("factor", [0.5, 0, -2, math.nan, math.inf, "2", None, True])
def test_a_wrong_factor_is_refused_at_once(factor: Any) -> None:
    with pytest.raises(InvalidOptionError, match="factor"):
        exponential(factor=factor)


@pytest.mark.parametrize("value", [[], (), None, 5, "15", {1: 2}, exponential, fixed])
def test_what_is_no_policy_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError, match="retry"):
        as_policy(value)
