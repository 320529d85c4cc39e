"""A deployment of a test's own, its processes, and what its handlers wrote down."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from crash.journal import Journal
from crash.processes import Program, Zygote, environment_of, lone_orders
from dtq import Client, Handle
from dtq_core.settings import Settings
from support.eventually import eventually
from support.hand import Hand

VISIBILITY_S = 1.0
LONG_VISIBILITY_S = 60.0
WELL_UNDER_S = 20.0
"""Far less than the long visibility timeout, far more than a restart takes."""


class Scene:
    """Everything a test needs; all that it submits is in the ledger at its end."""

    def __init__(self, settings: Settings, zygote: Zygote, folder: Path) -> None:
        self.settings = settings
        self.hand = Hand(settings)
        self.client = Client(
            settings.redis_url, prefix=settings.prefix, partitions=settings.partitions
        )
        self.journal = Journal(folder / "journal")
        self.accepted: list[str] = []
        self._zygote = zygote
        self._folder = folder
        self._programs: list[Program] = []

    def submit(self, task: Any, *args: Any, **kwargs: Any) -> Handle[Any]:
        handle: Handle[Any] = self.client.submit(task, *args, **kwargs)
        self.accepted.append(handle.id)
        return handle

    def submit_many(self, task: Any, count: int) -> list[Handle[Any]]:
        handles: list[Handle[Any]] = self.client.submit_many(task, [()] * count)
        self.accepted += [handle.id for handle in handles]
        return handles

    def crew(self, *failpoints: str, processes: int = 1, long: bool = False) -> Program:
        """Start a supervisor, which also schedules; its first children have these failpoints."""
        visibility_s = LONG_VISIBILITY_S if long else VISIBILITY_S
        settings = replace(self.settings, processes=processes, visibility_timeout=visibility_s)
        return self._start("crash.supervise", *failpoints, settings=settings)

    def worker(self, failpoints: str = "") -> Program:
        """Start a worker process that nobody watches."""
        program = self._start("dtq_worker.child", failpoints=failpoints)
        program.say(lone_orders(self.settings))
        return program

    def scheduler(self, failpoints: str = "") -> Program:
        return self._start("crash.schedule", failpoints=failpoints)

    def submitter(self, *arguments: str, failpoints: str = "") -> Program:
        return self._start("crash.submitting", *arguments, failpoints=failpoints)

    def starts(self, handle: Handle[Any]) -> list[int]:
        """Return the attempts that were started, as the handler wrote down."""
        return self.journal.attempts(handle.id)

    def started(self, *handles: Handle[Any]) -> None:
        """Wait until handlers have started."""
        eventually("the handlers to start", lambda: all(map(self.starts, handles)))

    def absorbed(self, task_id: str) -> int:
        """Return how many entries of a task were absorbed."""
        events = self.hand.command("XRANGE", self.hand.store.keys_of(task_id).events, "-", "+")
        wanted = {b"type": b"TASK_DUPLICATE_ABSORBED", b"id": task_id.encode()}
        return sum(wanted.items() <= fields.items() for _, fields in events)

    def kill_all(self) -> None:
        for program in self._programs:
            program.kill_all()

    def close(self) -> None:
        self.kill_all()
        self.client.close()
        self.hand.close()

    def _start(
        self,
        module: str,
        *arguments: str,
        settings: Settings | None = None,
        failpoints: str = "",
    ) -> Program:
        environment = environment_of(settings or self.settings, self.journal.path)
        environment["DTQ_FAILPOINTS"] = failpoints
        log = self._folder / f"program{len(self._programs)}.log"
        self._programs.append(Program(self._zygote, module, arguments, environment, log))
        return self._programs[-1]
