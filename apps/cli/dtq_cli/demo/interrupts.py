"""Ctrl-C, and its like from outside: an exception, but never while something is being started.

A process that is interrupted between the start of a child and the line that remembers it would
leave that child behind.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Raises ``KeyboardInterrupt(signal number)`` once; whoever cleans up is not interrupted."""

    def __init__(self) -> None:
        self._wanted = True
        self._held = False
        self._pending = 0

    def __enter__(self) -> Interrupts:
        self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let nothing be interrupted inside; a signal that came meanwhile counts at the end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._pending:
            self._raise(self._pending)

    def ignore(self) -> None:
        """Interrupt nothing from now on."""
        self._wanted = False

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._held:
            self._pending = number
        else:
            self._raise(number)

    def _raise(self, number: int) -> None:
        if self._wanted:
            self._wanted = False
            raise KeyboardInterrupt(number)
