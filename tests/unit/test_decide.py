from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq_core.decide import FALLBACK_DELAY_S, Finish, Policy, Release, decide
from dtq_core.limits import MAX_DURATION_S
from dtq_core.outcome import (
    Cancelled,
    ErrorInfo,
    Failed,
    GivenBack,
    Succeeded,
    UnknownTask,
)
from dtq_core.record import Claim

ERROR = ErrorInfo("ValueError", "no", "line 1")


def claim(**changes: Any) -> Claim:
    sound = Claim("f" * 32, "default", "normal", "1-1", 1, 3, 7, b"", b"", 0, 0, 1_000, 0, 0, 0)
    return sound._replace(**changes)


def policy(retry_delay: Callable[[int], Any] = float, **changes: Any) -> Policy:
    return Policy(retry_delay, 60_000, 5_000, 500)._replace(**changes)


def retried(retry_delay: Callable[[int], Any], after_s: float | None = None) -> Finish:
    decision = decide(claim(), Failed(ERROR, after_s=after_s), policy(retry_delay))
    assert isinstance(decision, Finish)
    assert decision.outcome == "retry"
    return decision


def test_success_keeps_the_result() -> None:
    assert decide(claim(), Succeeded(b"42"), policy()) == Finish(
        "f" * 32, 7, "succeeded", b"42", "", 0, 60_000
    )


@given(st.integers(1, 50), st.integers(1, 50), st.booleans())
def test_a_failure_is_tried_again_while_attempts_are_left(
    attempt: int, most: int, retry: bool
) -> None:
    decision = decide(claim(attempt=attempt, max_attempts=most), Failed(ERROR, retry), policy())
    assert isinstance(decision, Finish)
    assert decision.outcome == ("retry" if retry and attempt < most else "failed")
    assert decision.lease == 7
    assert decision.reason == "ValueError: no"
    assert msgspec.json.decode(decision.body, type=ErrorInfo) == ERROR


def test_the_policy_is_asked_with_the_attempt_that_failed() -> None:
    decision = decide(claim(attempt=2), Failed(ERROR), policy(lambda attempt: attempt * 1.5))
    assert isinstance(decision, Finish)
    assert decision.delay_ms == 3_000


def test_the_handlers_own_wait_comes_before_the_policy() -> None:
    assert retried(lambda _: 1 / 0, after_s=2.5).delay_ms == 2_500
    assert retried(lambda _: 1 / 0, after_s=0).delay_ms == 0


def test_a_failure_for_good_never_asks_the_policy() -> None:
    decision = decide(claim(), Failed(ERROR, retry=False), policy(lambda _: 1 / 0))
    assert isinstance(decision, Finish)
    assert decision.outcome == "failed"


@given(st.floats() | st.integers() | st.none() | st.text() | st.booleans())
def test_whatever_a_policy_answers_the_wait_is_sound(answer: Any) -> None:
    assert 0 <= retried(lambda _: answer).delay_ms <= MAX_DURATION_S * 1000


@pytest.mark.parametrize(
    "answer", [-1, math.nan, math.inf, 10**400, None, "soon", MAX_DURATION_S + 1]
)
def test_a_nonsensical_wait_becomes_the_fallback(answer: Any) -> None:
    assert retried(lambda _: answer).delay_ms == FALLBACK_DELAY_S * 1000


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_policy_that_raises_becomes_the_fallback(error: type[BaseException]) -> None:
    def broken(_: int) -> float:
        raise error

    assert retried(broken).delay_ms == FALLBACK_DELAY_S * 1000


def test_a_cancelled_attempt_ends_the_task() -> None:
    decision = decide(claim(), Cancelled("by hand"), policy())
    assert isinstance(decision, Finish)
    assert (decision.outcome, decision.reason) == ("cancelled", "by hand")


def test_a_task_given_back_is_queued_again_at_once() -> None:
    assert decide(claim(), GivenBack("the worker stops"), policy()) == Release(
        "f" * 32, 7, 0, "the worker stops"
    )


def test_an_unknown_task_rests_until_its_time_is_over() -> None:
    assert decide(claim(), UnknownTask(), policy()) == Release(
        "f" * 32, 7, 500, "unknown task name"
    )
    waiting = decide(claim(started_ms=5_999, postponed_ms=1_000), UnknownTask(), policy())
    assert isinstance(waiting, Release)
    over = decide(claim(started_ms=6_000, postponed_ms=1_000), UnknownTask(), policy())
    assert isinstance(over, Finish)
    assert (over.outcome, over.reason) == (
        "failed",
        "UnknownTask: no worker knew this task for 5 s",
    )


def test_an_unknown_task_always_rests_a_little() -> None:
    rested = decide(claim(), UnknownTask(), policy(unknown_delay_ms=0))
    assert isinstance(rested, Release)
    assert rested.delay_ms == 1


@pytest.mark.parametrize("after_s", ["10", "soon", None, object(), -1, float("nan"), 1e300])
def test_whatever_a_retry_of_the_users_own_holds_the_task_is_tried_again(after_s: Any) -> None:
    assert retried(lambda _: 5.0, after_s=after_s).delay_ms in {5_000, 10_000, 300_000}
