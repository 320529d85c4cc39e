"""Single keys from a terminal, and a terminal that is left as it was found."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

_ENDED = "\x04"
"""What stands for a keyboard that is gone: the key that ends an input."""


class Keyboard:
    """Keys as they are pressed; none where stdin is no terminal."""

    def __init__(self) -> None:
        """Begin; use it as a context manager."""
        self._fd = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None

    def __enter__(self) -> Keyboard:
        """Have keys come one by one and unseen; Ctrl-C stays what it is."""
        if self._fd is not None:
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back as it was."""
        if self._fd is not None:
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._before)

    def pressed(self, timeout_s: float) -> str:
        """Wait for a key.

        Args:
            timeout_s: how long at most, in seconds.

        Returns:
            The keys pressed, none after the time has passed, Ctrl-D where the terminal is gone.
        """
        if self._fd is None:
            time.sleep(timeout_s)
            return ""
        ready, _, _ = select.select([self._fd], [], [], timeout_s)
        return os.read(self._fd, 64).decode("ascii", "replace") or _ENDED if ready else ""


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM end the command the long way, so that the terminal is given back."""

    def leave(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
