"""Retry policies: how long a task waits before it is tried again.

A policy is a function from the number of the attempt that failed (1, 2, …) to seconds. Whatever may
be given as one is brought into that form by :func:`as_policy`.

Jitter is *equal jitter*: the wait is drawn evenly between half the delay and all of it. Tasks that
failed together come back apart, none comes back at once, and none later than the delay says.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence

from dtq_core.decide import RetryDelay
from dtq_core.errors import InvalidOptionError
from dtq_core.limits import check_duration_ms

RetryPolicy = RetryDelay | Sequence[float]
"""What ``retry=`` takes: a function, or the seconds one by one."""

DEFAULT_CAP_S = 300.0


def exponential(
    base: float = 1, factor: float = 2, cap: float = DEFAULT_CAP_S, jitter: bool = True
) -> RetryDelay:
    """Wait ``base``, ``base * factor``, ``base * factor ** 2``, … seconds, at most ``cap``.

    Args:
        base: seconds after the first attempt.
        factor: what each delay is multiplied by for the next; 1 or more.
        cap: the longest delay, in seconds.
        jitter: draw each wait between half the delay and all of it.

    Raises:
        InvalidOptionError: for a duration that is not 0 s to ten years, or a factor below 1.
    """
    base_s, cap_s = _seconds("base", base), _seconds("cap", cap)
    growth = _factor(factor)

    def delay_s(attempt: int) -> float:
        try:
            return min(base_s * growth ** (attempt - 1), cap_s)
        except OverflowError:  # beyond what a float can say, hence beyond any cap
            return cap_s if base_s else 0.0

    return _jittered(delay_s) if jitter else delay_s


def linear(step: float = 1, cap: float = DEFAULT_CAP_S, jitter: bool = True) -> RetryDelay:
    """Wait ``step``, ``2 * step``, ``3 * step``, … seconds, at most ``cap``.

    Args:
        step: seconds after the first attempt, and what each delay is longer than the last.
        cap: the longest delay, in seconds.
        jitter: draw each wait between half the delay and all of it.

    Raises:
        InvalidOptionError: for a duration that is not 0 s to ten years.
    """
    step_s, cap_s = _seconds("step", step), _seconds("cap", cap)

    def delay_s(attempt: int) -> float:
        return min(step_s * attempt, cap_s)

    return _jittered(delay_s) if jitter else delay_s


def fixed(delay: float, jitter: bool = False) -> RetryDelay:
    """Wait the same time after every attempt.

    Args:
        delay: seconds.
        jitter: draw each wait between half the delay and all of it.

    Raises:
        InvalidOptionError: for a delay that is not 0 s to ten years.
    """
    seconds = _seconds("delay", delay)

    def delay_s(attempt: int) -> float:
        return seconds

    return _jittered(delay_s) if jitter else delay_s


def as_policy(value: RetryPolicy) -> RetryDelay:
    """Return a retry policy as a function from the attempt that failed to seconds.

    Args:
        value: what :func:`exponential`, :func:`linear` or :func:`fixed` made; any function of the
            attempt's number; or a list or tuple of seconds, the last of which repeats. A function
            is called here once, for attempt 1, so that a wrong one is found when it is given.

    Raises:
        InvalidOptionError: for anything else, or seconds that are not 0 s to ten years.
    """
    if callable(value):
        check_duration_ms("the retry delay after attempt 1", value(1))
        return value
    if isinstance(value, list | tuple) and value:
        return _listed([_seconds("retry delay", item) for item in value])
    raise InvalidOptionError(
        f"retry {value!r} is no retry policy: use exponential(), linear(), fixed(), "
        "a list of seconds, or a function of the attempt's number"
    )


def _listed(delays_s: list[float]) -> RetryDelay:
    def delay_s(attempt: int) -> float:
        return delays_s[min(attempt, len(delays_s)) - 1]

    return delay_s


def _jittered(policy: RetryDelay) -> RetryDelay:
    def delay_s(attempt: int) -> float:
        longest = policy(attempt)
        return random.uniform(longest / 2, longest)

    return delay_s


def _seconds(kind: str, value: float) -> float:
    check_duration_ms(kind, value)
    return float(value)


def _factor(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise InvalidOptionError(f"factor {value!r} is out of range: use a number from 1 on")
    return float(min(value, sys.float_info.max))  # an int may be beyond any float
