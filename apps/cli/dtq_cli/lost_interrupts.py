"""Ctrl-C that Python would lose.

``KeyboardInterrupt`` is raised wherever the main thread happens to be. Inside a ``__del__`` or a
callback of the garbage collector nobody can catch it: Python prints it and goes on, and a command
that waits or follows would run for ever.
(https://docs.python.org/3/library/sys.html#sys.unraisablehook)
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

_SOON_S = 0.01


def raise_lost_interrupts_again() -> None:
    """From now on, raise each ``KeyboardInterrupt`` that was lost again, a moment later."""
    other_hook = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs, /) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            _raise_soon(lost.exc_value.args)
        else:
            other_hook(lost)

    sys.unraisablehook = hook


def _raise_soon(arguments: tuple[Any, ...]) -> None:
    def again(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(*arguments)

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, _SOON_S)
