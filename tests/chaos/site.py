"""What chaos happens to: a Redis server that keeps everything, machines, a scheduler, proxies."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from chaos.plan import MACHINES, VISIBILITY_S
from dtq_core.embedded import start_temporary
from dtq_core.settings import Settings
from dtq_core.store import Store
from support.journal import JOURNAL, Journal
from support.programs import Program, Zygote, environment_of
from support.proxy import Proxy

HANDLERS = "chaos.handlers"
REAPER_INTERVAL_S = 0.5


class Site:
    """A deployment; a context manager.

    Each machine reaches Redis through a proxy of its own, and so do the clients.
    """

    def __init__(self, folder: Path) -> None:
        self.journal = Journal(folder / "journal")
        self.scheduler: Program
        self.machines: list[Program] = []
        self._ever: list[list[Program]] = [[] for _ in range(MACHINES)]
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._programs: list[Program] = []

    def __enter__(self) -> Site:
        with contextlib.ExitStack() as stack:
            self.server = stack.enter_context(start_temporary(persistence="always"))
            self.settings = _settings(self.server.url)
            self.proxies = [
                stack.enter_context(Proxy(self.server.url)) for _ in range(MACHINES + 1)
            ]
            self._zygote = Zygote(HANDLERS)
            stack.callback(self._zygote.close)
            stack.callback(self.kill_all)
            self.machines = [self.new_machine(index) for index in range(MACHINES)]
            self.scheduler = self.new_scheduler()
            self.store = Store(self.settings)
            stack.callback(self.store.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def clients_proxy(self) -> Proxy:
        return self.proxies[-1]

    def new_machine(self, index: int) -> Program:
        """Start a supervisor with two processes."""
        settings = replace(self.settings, redis_url=self.proxies[index].url)
        self._ever[index].append(self._start("support.supervise", HANDLERS, settings=settings))
        return self._ever[index][-1]

    def everybody_at(self, index: int) -> list[int]:
        """The processes of a machine, those of its earlier supervisors that still end included."""
        return [pid for program in self._ever[index] for pid in program.group()]

    def new_scheduler(self) -> Program:
        return self._start("support.schedule", settings=self.settings)

    def kill_all(self) -> None:
        for program in self._programs:
            program.kill_all()

    def _start(self, module: str, *arguments: str, settings: Settings) -> Program:
        environment = environment_of(settings) | {JOURNAL: str(self.journal.path)}
        log = self._folder / f"program{len(self._programs)}.log"
        self._programs.append(Program(self._zygote, module, arguments, environment, log))
        return self._programs[-1]


def _settings(url: str) -> Settings:
    return Settings(
        redis_url=url,
        prefix="chaos",
        visibility_timeout=VISIBILITY_S,
        reaper_interval=REAPER_INTERVAL_S,
        shutdown_grace=1,
        concurrency=10,
        processes=2,
        scheduler_tick=0.1,
        leader_lease=1,
        retry_timeout=10,
    )
