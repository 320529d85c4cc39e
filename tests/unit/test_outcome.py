from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq_core.limits import MAX_ERROR_BYTES
from dtq_core.outcome import ErrorInfo, describe_error

any_text = st.text(alphabet=st.characters())


def size_bytes(info: ErrorInfo) -> int:
    return sum(len(part.encode()) for part in (info.type, info.message, info.traceback))


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as caught:
        return caught


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt

    def __repr__(self) -> str:
        raise SystemExit


@given(any_text)
def test_any_message_becomes_bounded_text_that_json_can_say(message: str) -> None:
    info = describe_error(ValueError(message))
    assert "\0" not in info.message
    assert size_bytes(info) <= MAX_ERROR_BYTES
    assert msgspec.json.decode(msgspec.json.encode(info), type=ErrorInfo) == info


@given(any_text, any_text)
def test_the_reason_is_one_short_printable_line(type_: str, message: str) -> None:
    reason = ErrorInfo(type_, message).reason
    assert len(reason) <= 200
    assert reason.isprintable()


def test_the_reason_says_type_and_message() -> None:
    assert ErrorInfo("ValueError", "a\n  b").reason == "ValueError: a b"
    assert ErrorInfo("ValueError", "").reason == "ValueError"
    assert ErrorInfo("E", "\x1b[31m").reason == "E: \\x1b[31m"
    assert ErrorInfo("E", "x" * 500).reason.endswith("x…")


@pytest.mark.parametrize("message", ["x" * 10**6, "ü" * 10**6, "\ud800" * 10**5, "\0" * 10**5])
def test_a_huge_message_is_cut(message: str) -> None:
    info = describe_error(raised(ValueError(message)))
    assert size_bytes(info) <= MAX_ERROR_BYTES
    assert info.message


def test_a_traceback_keeps_its_end() -> None:
    def fall(levels: int) -> None:
        if levels == 0:
            raise ValueError("at the bottom")
        fall(levels - 1)

    with pytest.raises(ValueError, match="bottom") as caught:
        fall(500)
    info = describe_error(caught.value)
    assert info.traceback.endswith("ValueError: at the bottom\n")
    assert size_bytes(info) <= MAX_ERROR_BYTES


@pytest.mark.parametrize(
    "error",
    [
        UnprintableError(),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        StopIteration(5),
        MemoryError(),
        ExceptionGroup("many", [ValueError(1), UnprintableError()]),
    ],
)
def test_any_exception_can_be_described(error: BaseException) -> None:
    info = describe_error(raised(error))
    assert info.type == type(error).__name__
    assert size_bytes(info) <= MAX_ERROR_BYTES


def test_endless_recursion_can_be_described() -> None:
    def fall() -> None:
        fall()

    with pytest.raises(RecursionError) as caught:
        fall()
    assert describe_error(caught.value).type == "RecursionError"


def test_a_circle_of_causes_can_be_described() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert describe_error(raised(one)).message == "one"
