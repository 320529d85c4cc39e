"""Worker processes for asynchronous tests: children of nobody, and supervisors with children."""

from __future__ import annotations

from pathlib import Path

from dtq_core.settings import Settings
from dtq_worker.identity import new_worker_id
from support import journal as written
from support.programs import (
    ENDS_WITHIN_S,
    TESTS,
    Program,
    Zygote,
    clean_environment,
    environment_of,
    orders,
)
from worker.stage import eventually


class Journal(written.Journal):
    """What the handlers of some processes wrote down."""

    async def wait_for(
        self, event: str, count: int = 1, task_id: str | None = None
    ) -> list[written.Line]:
        """Wait until something was written down that often."""

        def enough() -> list[written.Line] | None:
            found = self.lines(event, task_id)
            return found if len(found) >= count else None

        return await eventually(f"{count} times {event}", enough) or []


class Forked:
    """A program, waited for on the event loop."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.pid = program.pid
        self.log = program.log
        self.children = program.children
        self.signal = program.signal
        self.signal_all = program.signal_all
        self.destroy = program.kill_all

    @property
    def exit_code(self) -> int | None:
        return self._program.exit_code

    async def ended(self, limit_s: float = ENDS_WITHIN_S) -> int:
        """Wait for its end, and return its exit code."""
        await eventually("the end of a process", lambda: self.exit_code is not None, limit_s)
        assert self.exit_code is not None
        return self.exit_code

    def lines(self) -> list[str]:
        """Its log."""
        return self.log.read_text("utf-8", "replace").splitlines()


class Child(Forked):
    """A worker process as a supervisor would start it."""

    def __init__(self, zygote: Zygote, settings: Settings, journal: Journal, log: Path) -> None:
        self.worker_id = new_worker_id()
        environment = {written.JOURNAL: str(journal.path)}
        super().__init__(Program(zygote, "dtq_worker.child", [], environment, log))
        self._program.say(orders(settings, self.worker_id, "worker.handlers"))

    def hurry(self) -> None:
        """Do what a supervisor does that is told twice to stop."""
        self._program.say("!")

    def hang_up(self) -> None:
        """Do what the death of its supervisor does."""
        self._program.hang_up()


class Crew(Forked):
    """A supervisor with its children, in a process group of its own."""

    def __init__(
        self,
        zygote: Zygote,
        settings: Settings,
        journal: Journal,
        log: Path,
        *modules: str,
        path: Path = TESTS,
    ) -> None:
        environment = environment_of(settings) | clean_environment(TESTS, path)
        environment[written.JOURNAL] = str(journal.path)
        arguments = [",".join(modules or ["worker.handlers"])]
        super().__init__(Program(zygote, "support.supervise", arguments, environment, log))
