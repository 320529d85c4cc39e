from __future__ import annotations

import contextlib
import json
import math
from collections import UserDict
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtq_core import codec
from dtq_core.errors import EncodingError
from dtq_core.limits import MAX_DEPTH

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
tricky_text = st.text(alphabet='[]{}"\\/ua,:')


def nested(levels: int, innermost: Any = 1) -> Any:
    for _ in range(levels):
        innermost = [innermost]
    return innermost


def levels_of(value: Any) -> int:
    if isinstance(value, list):
        return 1 + max(map(levels_of, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(levels_of, value.values()), default=0)
    return 0


class Evil:
    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("no")


class Model:
    def model_dump(self, *, mode: str, by_alias: bool) -> Any:
        assert mode == "json"
        assert by_alias
        return {"a": math.nan}


@given(values)
@example(10**4000)
@example(5e-324)
@example(1.7976931348623157e308)
@example("\x00\x1b")
def test_what_is_encoded_reads_back_equal(value: Any) -> None:
    text = codec.encode(value, "it")
    back = codec.decode(text, "it")
    assert back == value
    assert type(back) is type(value)
    assert json.loads(text) == value


def test_the_sign_of_zero_survives() -> None:
    assert math.copysign(1, codec.decode(codec.encode(-0.0, "it"), "it")) == -1


@given(values, st.sampled_from([math.nan, math.inf, -math.inf]), st.text())
def test_a_float_that_json_cannot_say_is_refused_wherever_it_is(
    value: Any, bad: float, key: str
) -> None:
    for holder in ([value, bad], {key: [value, {"x": bad}]}, (bad,), {"a": {"b": (value, bad)}}):
        with pytest.raises(EncodingError, match="argument 'x' holds NaN or infinity"):
            codec.encode(holder, "argument 'x'")


def test_nan_is_found_in_sets_structs_and_models() -> None:
    point = msgspec.defstruct("Point", [("x", float)])
    for holder in ({math.nan}, frozenset([math.inf]), point(math.nan), [Model()]):
        with pytest.raises(EncodingError, match="NaN or infinity"):
            codec.encode(holder, "it")


def test_none_and_the_text_null_are_no_nan() -> None:
    assert codec.encode([None, "null", {"null": None}], "it") == b'[null,"null",{"null":null}]'


@pytest.mark.parametrize("value", ["\ud800", ["a\udfffb"], {"\ud800": 1}])
def test_a_lone_surrogate_is_refused(value: Any) -> None:
    with pytest.raises(EncodingError, match="it holds text with a lone surrogate"):
        codec.encode(value, "it")


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 500, 100_000])
def test_deep_values_are_refused(levels: int) -> None:
    with pytest.raises(EncodingError, match="it is nested more than 100 levels deep"):
        codec.encode(nested(levels), "it")
    with pytest.raises(EncodingError, match="it is nested more than 100 levels deep"):
        codec.decode(b"[" * levels + b"]" * levels, "it")


def test_the_deepest_value_allowed_is_allowed() -> None:
    value = nested(MAX_DEPTH)
    assert codec.decode(codec.encode(value, "it"), "it") == value


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(EncodingError, match="levels deep"):
        codec.encode(value, "it")


@pytest.mark.parametrize(
    "value",
    [object(), 1j, range(3), UserDict(a=1), {(1, 2): 3}, {None: 1}, [10**5000], Evil(), [Evil]],
)
def test_what_has_no_json_form_is_refused_by_name(value: Any) -> None:
    with pytest.raises(EncodingError, match=r"^the result of f cannot be encoded: "):
        codec.encode(value, "the result of f")


def test_a_raw_value_beside_null_is_refused_not_a_crash() -> None:
    with pytest.raises(EncodingError):
        codec.encode([None, msgspec.Raw(b"1")], "it")


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"NaN", b"[1,]", b"\xff", b'"\xff"', b'"\\ud800"', b"1e999", "\ud800", b"1 2"],
)
def test_text_that_is_not_json_is_refused(text: bytes | str) -> None:
    with pytest.raises(EncodingError, match=r"^payload is not valid JSON"):
        codec.decode(text, "payload")


@given(st.binary() | st.text())
def test_decoding_raises_nothing_else(text: bytes | str) -> None:
    with contextlib.suppress(EncodingError):
        codec.decode(text, "it")


@given(st.recursive(tricky_text, lambda v: st.lists(v) | st.dictionaries(tricky_text, v)))
def test_depth_counts_brackets_but_not_those_in_text(value: Any) -> None:
    assert codec.depth(json.dumps(value).encode()) == levels_of(value)


def test_wide_values_are_not_deep() -> None:
    value = [{"a": [i]} for i in range(1000)]
    assert codec.decode(codec.encode(value, "it"), "it") == value


def test_describe_survives_any_exception() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise SystemExit

    assert codec.describe(ValueError("no")) == "ValueError: no"
    assert codec.describe(KeyError()) == "KeyError"
    assert codec.describe(Unprintable()) == "Unprintable: (its message cannot be printed)"
