"""A deployment of a test's own, its processes, and what its handlers wrote down."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dtq import Client, Handle
from dtq_client.operating.verifying import verify
from dtq_core.settings import Settings
from dtq_worker.identity import new_worker_id
from support.eventually import eventually
from support.hand import Hand
from support.journal import JOURNAL, Journal
from support.ledger import check_ledger
from support.programs import Program, Zygote, environment_of, orders

VISIBILITY_S = 1.0
LONG_VISIBILITY_S = 60.0
WELL_UNDER_S = 20.0
"""Far less than the long visibility timeout, far more than a restart takes."""


class Scene:
    """Everything a test needs; all that it submits is in the ledger at its end."""

    def __init__(self, settings: Settings, zygote: Zygote, handlers: str, folder: Path) -> None:
        """Set up; ``handlers`` is the module that workers import."""
        self.settings = settings
        self.handlers = handlers
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

    def submit_many(self, task: Any, count: int, *args: Any) -> list[Handle[Any]]:
        """Submit the same call so many times."""
        handles: list[Handle[Any]] = self.client.submit_many(task, [args] * count)
        self.accepted += [handle.id for handle in handles]
        return handles

    def crew(self, *failpoints: str, own: str = "", long: bool = False, **settings: Any) -> Program:
        """Start a supervisor, which also schedules.

        Args:
            failpoints: of its first children.
            own: its own failpoints.
            long: whether its visibility timeout is out of reach.
            settings: other ones than the scene's.
        """
        if long:
            settings["visibility_timeout"] = LONG_VISIBILITY_S
        changed = replace(self.settings, **settings)
        return self.program(
            "support.supervise", self.handlers, *failpoints, settings=changed, failpoints=own
        )

    def worker(
        self, failpoints: str = "", worker_id: str | None = None, **settings: Any
    ) -> Program:
        """Start a worker process that nobody watches; arguments as :meth:`crew`."""
        program = self.program("dtq_worker.child", failpoints=failpoints)
        changed = replace(self.settings, **settings)
        program.say(orders(changed, worker_id or new_worker_id(), self.handlers))
        return program

    def scheduler(self, failpoints: str = "") -> Program:
        return self.program("support.schedule", failpoints=failpoints)

    def starts(self, handle: Handle[Any]) -> list[int]:
        """Return the attempts that were started, as the handler wrote down."""
        return self.journal.attempts(handle.id)

    def started(self, *handles: Handle[Any]) -> None:
        """Wait until handlers have started."""
        wanted = {handle.id for handle in handles}
        eventually("the handlers to start", lambda: wanted <= self.journal.count("start").keys())

    def leads(self, pid: int) -> bool:
        """Whether the scheduler of a process leads in the first partition."""
        owner = self.hand.command("GET", self.hand.store.partitions.all[0].leader)
        return owner is not None and owner.startswith(f"scheduler-{pid}-".encode())

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

    def settle(self, allowed: range) -> None:
        """Kill all that runs, and check the ledger; the product's own check agrees with it.

        Args:
            allowed: how often a handler may have been started.
        """
        self.kill_all()
        check_ledger(self.hand.store, self.accepted, self.journal.count("start"), allowed)
        assert verify(self.hand.store, "os:test@here").kinds == []

    def program(
        self,
        module: str,
        *arguments: str,
        settings: Settings | None = None,
        failpoints: str = "",
    ) -> Program:
        """Start a module as a program of this deployment."""
        environment = environment_of(settings or self.settings)
        environment |= {JOURNAL: str(self.journal.path), "DTQ_FAILPOINTS": failpoints}
        log = self._folder / f"program{len(self._programs)}.log"
        self._programs.append(Program(self._zygote, module, arguments, environment, log))
        return self._programs[-1]
