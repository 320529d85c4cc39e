from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq_core.errors import InputError, InvalidNameError, InvalidOptionError, TooLargeError
from dtq_core.limits import (
    MAX_DURATION_S,
    Band,
    check_band,
    check_count,
    check_duration_ms,
    check_idempotency_key,
    check_name,
    check_size,
    check_task_id,
)

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(alphabet=st.characters()),
    st.binary(),
    st.lists(st.integers()),
    st.decimals(),
)


@given(anything)
def test_checks_raise_input_errors_with_one_short_line_and_nothing_else(value: Any) -> None:
    for check in (
        lambda: check_name("queue name", value),
        lambda: check_idempotency_key(value),
        lambda: check_task_id(value),
        lambda: check_band(value),
        lambda: check_duration_ms("delay", value),
        lambda: check_count("max_attempts", value, 10),
    ):
        try:
            check()
        except InputError as error:
            text = str(error)
            assert text.isprintable()
            assert text.isascii()
            assert len(text) < 200


@given(st.floats(0, MAX_DURATION_S) | st.integers(0, MAX_DURATION_S))
def test_a_duration_is_rounded_up_to_whole_milliseconds(seconds: float) -> None:
    ms = check_duration_ms("delay", seconds)
    assert isinstance(ms, int)
    assert 0 <= ms - seconds * 1000 <= 1
    assert (ms == 0) == (seconds == 0)


@pytest.mark.parametrize(
    "seconds",
    [
        -1,
        -5e-324,
        MAX_DURATION_S + 1,
        10**400,
        math.nan,
        math.inf,
        True,
        "5",
        None,
        Decimal(1),
        Fraction(1),
    ],
)
def test_what_is_no_duration_is_refused(seconds: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"^delay "):
        check_duration_ms("delay", seconds)


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 100, ".", "-"])
def test_good_names(name: str) -> None:
    assert check_name("task name", name) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 101, "a b", "a\n", "ä", "a:b", "a{b}", "a*", "٣", None, 5, b"a"]
)
def test_bad_names_are_refused(name: Any) -> None:
    with pytest.raises(InvalidNameError, match=r"^task name "):
        check_name("task name", name)


@pytest.mark.parametrize("key", ["", "a b", "a\n", "x" * 256, "ü", None])
def test_bad_keys_are_refused(key: Any) -> None:
    with pytest.raises(InvalidNameError, match=r"^idempotency key "):
        check_idempotency_key(key)


def test_good_keys() -> None:
    for key in ("!", "~" * 255, "order/1?x={y}"):
        assert check_idempotency_key(key) == key


def test_task_ids_are_32_lower_case_hexadecimal_digits() -> None:
    assert check_task_id("0af" * 10 + "11") == "0af" * 10 + "11"
    for bad in ("", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "0" * 32 + "\n", None):
        with pytest.raises(InvalidNameError):
            check_task_id(bad)


def test_bands_by_name() -> None:
    assert [check_band(name) for name in ("critical", "high", "normal", "low")] == list(Band)
    wrong: list[Any] = ["High", "", None, 1, [], {}]
    for bad in wrong:
        with pytest.raises(InvalidOptionError, match="critical, high, normal, low"):
            check_band(bad)


@given(st.integers(), st.integers(1, 100))
def test_counts_are_whole_numbers_within_their_bounds(value: int, maximum: int) -> None:
    if 1 <= value <= maximum:
        assert check_count("max_attempts", value, maximum) == value
    else:
        with pytest.raises(InvalidOptionError, match=r"^max_attempts "):
            check_count("max_attempts", value, maximum)


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(InvalidOptionError):
        check_count("max_attempts", value, 10)


def test_a_size_may_reach_its_limit_not_pass_it() -> None:
    check_size("the payload", 10, 10)
    with pytest.raises(TooLargeError, match="the payload is 11 bytes, over the limit of 10"):
        check_size("the payload", 11, 10)
