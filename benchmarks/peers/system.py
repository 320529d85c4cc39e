"""What each system under comparison says and does behind the one command line."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

REDIS_URL = os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1:6379/0")


class System(ABC):
    """One task queue: how to submit to it and how to start its workers."""

    name: str
    package: str
    acknowledges: str = "after"
    """``after`` or ``before`` the handler runs, in the set-up that is measured."""
    setting: str = ""
    """How it was set up for speed."""
    alone: bool = False
    """A worker program is one process; for two processes, two programs are started."""

    async def open(self) -> None:  # noqa: B027 - most systems need nothing
        """Connect."""

    async def close(self) -> None:  # noqa: B027
        """Disconnect."""

    @abstractmethod
    async def submit(self, task: str, argument: object) -> None:
        """Submit ``noop``, ``numbered`` or ``sleeper``."""

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        """Submit a chunk; one by one where the system has nothing for that."""
        for argument in arguments:
            await self.submit(task, argument)

    @abstractmethod
    def worker(self, processes: int) -> list[str]:
        """The command of a worker set up for speed."""

    @abstractmethod
    def default_worker(self) -> list[str]:
        """The command of a worker with default settings."""
