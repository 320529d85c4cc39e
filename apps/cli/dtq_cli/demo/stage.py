"""Where the demo takes place: a folder, a server and workers of its own, all gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, chdir
from dataclasses import asdict
from pathlib import Path

from dtq import Client
from dtq_cli.demo.crew import Crew
from dtq_cli.demo.interrupts import Interrupts
from dtq_core.embedded import EmbeddedServer
from dtq_core.settings import Settings

WORKERS = 2
TASKS_EACH = 4


class Stage:
    """A project of its own: neither the settings nor the server of another count here.

    Attributes:
        folder: for everything that is written; the server makes it a project.
        keep: whether the folder is to stay.
        server_version: as the server says it.
        settings: of all that takes part.
        client: to the server.
    """

    def __init__(self, interrupts: Interrupts) -> None:
        """Build it up.

        Args:
            interrupts: may end the demo, though not between a start and the note to stop it again.

        Raises:
            EmbeddedServerError: if the server does not start.
        """
        self._interrupts = interrupts
        self.keep = False
        with ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="dtq-demo-"))
            stack.callback(self._clear_away)
            stack.enter_context(chdir(self.folder))
            with interrupts.held():
                server = stack.enter_context(EmbeddedServer.start(self.folder))
            self.server_version = server.version
            self.settings = _settings(server.url)
            self.client = stack.enter_context(Client(**asdict(self.settings)))
            self._stack = stack.pop_all()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._interrupts.ignore()
        self._stack.close()

    def _clear_away(self) -> None:
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def journal(self) -> Path:
        """The file in which handlers record what they do."""
        return self.folder / "journal"

    def start_crew(self) -> Crew:
        """Start the workers."""
        with self._interrupts.held():
            crew = Crew(self.settings, self.folder / "worker.log")
            self._stack.callback(crew.stop)
        return crew


def _settings(url: str) -> Settings:
    return Settings(
        redis_url=url,
        prefix="dtq-demo",
        processes=WORKERS,
        concurrency=TASKS_EACH,
        shutdown_grace=1,
        retry_timeout=2,
        log_format="json",
    )
