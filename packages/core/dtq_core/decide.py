"""Decides what becomes of a task after an attempt. Pure: no Redis, no clock.

(claim, outcome, policy) → :class:`Finish` or :class:`Release`, one named constructor a transition.
The script has the last word on one thing that only Redis knows: a task whose cancelling was asked
for is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, assert_never

import msgspec

from dtq_core.limits import MAX_DURATION_S
from dtq_core.outcome import (
    Cancelled,
    ErrorInfo,
    Failed,
    GivenBack,
    Outcome,
    Succeeded,
    UnknownTask,
)
from dtq_core.record import Claim

RetryDelay = Callable[[int], float]
"""Seconds to wait before the next attempt, given the number of the one that failed."""

FALLBACK_DELAY_S = 300.0
"""The wait where a policy itself fails or answers nonsense: late is better than never."""

_encoder = msgspec.json.Encoder()


class Policy(NamedTuple):
    """What a decision needs besides claim and outcome.

    Attributes:
        retry_delay: of the handler's retry policy.
        result_ttl_ms: how long the result stays.
        unknown_timeout_ms: how long a task that nobody knows is kept waiting for a worker.
        unknown_delay_ms: how long it rests between two looks.
    """

    retry_delay: RetryDelay
    result_ttl_ms: int
    unknown_timeout_ms: int
    unknown_delay_ms: int


class Finish(NamedTuple):
    """End the attempt; in the order in which the script ``finish`` reads it."""

    task_id: str
    lease: int
    outcome: str
    body: bytes
    reason: str
    delay_ms: int
    result_ttl_ms: int

    @classmethod
    def succeeded(cls, claim: Claim, result: bytes, result_ttl_ms: int) -> Finish:
        """RUNNING → SUCCEEDED."""
        return cls(claim.task_id, claim.lease, "succeeded", result, "", 0, result_ttl_ms)

    @classmethod
    def retry(cls, claim: Claim, error: ErrorInfo, delay_ms: int) -> Finish:
        """RUNNING → RETRYING."""
        body = _encoder.encode(error)
        return cls(claim.task_id, claim.lease, "retry", body, error.reason, delay_ms, 0)

    @classmethod
    def failed(cls, claim: Claim, error: ErrorInfo) -> Finish:
        """RUNNING → DEAD_LETTERED or FAILED."""
        body = _encoder.encode(error)
        return cls(claim.task_id, claim.lease, "failed", body, error.reason, 0, 0)

    @classmethod
    def cancelled(cls, claim: Claim, reason: str) -> Finish:
        """RUNNING → CANCELLED."""
        body = _encoder.encode(ErrorInfo("Cancelled", reason))
        return cls(claim.task_id, claim.lease, "cancelled", body, reason, 0, 0)


class Release(NamedTuple):
    """Give the task back, no attempt spent; in the order in which ``release`` reads it."""

    task_id: str
    lease: int
    delay_ms: int
    reason: str

    @classmethod
    def now(cls, claim: Claim, reason: str) -> Release:
        """RUNNING → QUEUED."""
        return cls(claim.task_id, claim.lease, 0, reason)

    @classmethod
    def later(cls, claim: Claim, reason: str, delay_ms: int) -> Release:
        """RUNNING → SCHEDULED."""
        return cls(claim.task_id, claim.lease, max(1, delay_ms), reason)


Decision = Finish | Release


def outcome_name(decision: Decision) -> str:
    """Return what an attempt came to: succeeded, retried, failed, cancelled or released."""
    if isinstance(decision, Release):
        return "released"
    return "retried" if decision.outcome == "retry" else decision.outcome


def decide(claim: Claim, outcome: Outcome, policy: Policy) -> Decision:
    """Decide what becomes of a task.

    Args:
        claim: the attempt and its lease.
        outcome: what the handler did.
        policy: of the handler and the worker.
    """
    match outcome:
        case Succeeded(result):
            return Finish.succeeded(claim, result, policy.result_ttl_ms)
        case Failed(error, retry, after_s):
            if not retry or claim.attempt >= claim.max_attempts:
                return Finish.failed(claim, error)
            return Finish.retry(claim, error, _delay_ms(claim.attempt, after_s, policy))
        case Cancelled(reason):
            return Finish.cancelled(claim, reason)
        case UnknownTask():
            return _decide_unknown(claim, policy)
        case GivenBack(reason):
            return Release.now(claim, reason)
        case _:
            assert_never(outcome)


def _decide_unknown(claim: Claim, policy: Policy) -> Decision:
    waited_ms = claim.started_ms - claim.postponed_ms if claim.postponed_ms else 0
    if waited_ms < policy.unknown_timeout_ms:
        return Release.later(claim, "unknown task name", policy.unknown_delay_ms)
    message = f"no worker knew this task for {waited_ms / 1000:g} s"
    return Finish.failed(claim, ErrorInfo("UnknownTask", message))


def _delay_ms(attempt: int, after_s: float | None, policy: Policy) -> int:
    """The wait before the next attempt; whatever a policy does, the task is tried again."""
    try:
        seconds = float(policy.retry_delay(attempt) if after_s is None else after_s)
    except BaseException:  # a policy, or a Retry, of the user's own may raise or hold anything
        seconds = FALLBACK_DELAY_S
    if not 0 <= seconds <= MAX_DURATION_S:  # NaN and infinity as well
        seconds = FALLBACK_DELAY_S
    return int(seconds * 1000)
