"""What handlers wrote down: executions, counted outside dtq."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


class Journal:
    """A file of lines ``event task_id attempt pid``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def count(self, event: str) -> Counter[str]:
        """Return how often an event was written down for each task."""
        return Counter(task_id for kind, task_id, _, _ in self._rows() if kind == event)

    def attempts(self, task_id: str) -> list[int]:
        """Return the attempts that were started, in order."""
        rows = self._rows()
        return [int(n) for kind, of, n, _ in rows if (kind, of) == ("start", task_id)]

    def _rows(self) -> list[list[str]]:
        if not self.path.exists():
            return []
        return [line.split() for line in self.path.read_text().splitlines()]
