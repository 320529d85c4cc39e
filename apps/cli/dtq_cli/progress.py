"""How far a long operation is: a line that is written over on a terminal, and a last word."""

from __future__ import annotations

import sys

from dtq_cli.output import note
from dtq_cli.words import many


class Progress:
    """Counts; where the command is interrupted, it says how far it came.

    Everything is done batch by batch, so what was counted is done, and the rest is as it was.
    """

    def __init__(self, done: str) -> None:
        """Take the word for what is done, as ``requeued``."""
        self._word = done
        self._shows = sys.stderr.isatty()
        self.count = 0

    def __call__(self, count: int) -> None:
        """Note how many are done."""
        self.count = count
        if self._shows:
            print(f"\r{count:,} {self._word}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._shows and self.count:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if kind is not None:
            note(f"stopped: {many(self.count, 'was', 'were')} {self._word}, the rest is as it was")
