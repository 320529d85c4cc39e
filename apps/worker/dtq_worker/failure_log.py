"""What a worker's log says of attempts that did not succeed; it costs the others nothing.

Handlers may fail by the thousand, so lines are limited: the rest of a second is one line with
their number. Every attempt, with its traceback, is kept with its task (``dtq attempts``).
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from dtq_core.clock import mono_s
from dtq_core.decide import Decision, Finish
from dtq_worker.held import Held

_log = structlog.get_logger("dtq.executor")

LINES_A_SECOND = 20
_WINDOW_S = 1.0
_SAY_AGAIN_S = 60.0
"""From one line that a task name is unknown to the next of the same name."""
_MOST_NAMES = 1_000


class FailureLog:
    """Of one worker; on its loop's thread only."""

    def __init__(self) -> None:
        self._window_s = float("-inf")
        self._lines = 0
        self._left_out = 0
        self._said_s: dict[str, float] = {}

    def note(self, held: Held, decision: Decision) -> None:
        """Say what an attempt came to, unless it succeeded, was cancelled, or the worker stops."""
        if isinstance(decision, Finish):
            self._note_end(held, decision)
        elif decision.delay_ms:
            self._note_unknown(held.name, decision.delay_ms)

    def close(self) -> None:
        """Say what was left out."""
        if self._left_out:
            _log.warning("more attempts failed than are logged", count=self._left_out)
        self._left_out = 0

    def _note_end(self, held: Held, finish: Finish) -> None:
        if finish.outcome == "retry":
            if self._may_speak():
                _log.warning(
                    "attempt failed, to be retried",
                    **_described(held, finish),
                    retry_in_s=finish.delay_ms / 1000,
                )
        elif finish.outcome == "failed" and self._may_speak():
            _log.error("task failed", **_described(held, finish))

    def _note_unknown(self, name: str, delay_ms: int) -> None:
        now = mono_s()
        if now - self._said_s.get(name, float("-inf")) < _SAY_AGAIN_S or not self._may_speak():
            return
        if len(self._said_s) >= _MOST_NAMES:
            self._said_s.clear()
        self._said_s[name] = now
        _log.warning(
            "no handler of this name is registered here: its tasks are given back",
            name=name,
            again_in_s=delay_ms / 1000,
        )

    def _may_speak(self) -> bool:
        now = mono_s()
        if now - self._window_s >= _WINDOW_S:
            self._window_s, self._lines = now, 0
        self._lines += 1
        if self._lines <= LINES_A_SECOND:
            return True
        if not self._left_out:
            asyncio.get_running_loop().call_later(_WINDOW_S, self.close)
        self._left_out += 1
        return False


def _described(held: Held, finish: Finish) -> dict[str, Any]:
    claim = held.claim
    return {
        "task_id": claim.task_id,
        "name": held.name,
        "queue": claim.queue,
        "attempt": claim.attempt,
        "max_attempts": claim.max_attempts,
        "error": finish.reason,
    }
