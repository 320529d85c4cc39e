"""Fixtures for the tests of workers and schedulers."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dtq_core.embedded import start_temporary
from support.programs import Zygote
from worker.processes import Child, Crew, Journal
from worker.server import Server
from worker.stage import Stage, staged


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async with staged(redis_url) as made:
        yield made


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote("worker.handlers")
    yield made
    made.close()


class Children:
    """Starts worker processes of one stage."""

    def __init__(self, zygote: Zygote, stage: Stage, folder: Path) -> None:
        self.journal = Journal(folder / "journal")
        self.log = folder / "children.log"
        self._zygote = zygote
        self._stage = stage
        self._made: list[Child] = []

    def __call__(self, **overrides: Any) -> Child:
        settings = self._stage.settings(**overrides)
        self._made.append(Child(self._zygote, settings, self.journal, self.log))
        return self._made[-1]

    def destroy(self) -> None:
        for each in self._made:
            each.destroy()


@pytest.fixture
def child(zygote: Zygote, stage: Stage, tmp_path: Path) -> Iterator[Children]:
    """Starts worker processes, which end with the test."""
    made = Children(zygote, stage, tmp_path)
    yield made
    made.destroy()


@pytest.fixture
def crew(
    zygote: Zygote, stage: Stage, journal: Journal, tmp_path: Path
) -> Iterator[Callable[..., Crew]]:
    """Starts supervisors, which end with the test."""
    made: list[Crew] = []

    def start(*modules: str, **overrides: Any) -> Crew:
        settings, log = stage.settings(**overrides), tmp_path / f"crew{len(made)}.log"
        made.append(Crew(zygote, settings, journal, log, *modules, path=tmp_path))
        return made[-1]

    yield start
    for each in made:
        each.destroy()


@contextlib.contextmanager
def own_server(fsync: str = "everysec") -> Iterator[Server]:
    """Run a server; its socket needs a short path."""
    folder = Path(tempfile.mkdtemp(prefix="dtq"))
    made = Server(folder, fsync)
    try:
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that the test may hurt."""
    with own_server() as made:
        yield made


class Deployment(NamedTuple):
    """A server that a test may hurt, and all that works with it."""

    server: Server
    stage: Stage
    child: Children
    journal: Journal


@pytest.fixture
def deploy(
    zygote: Zygote, tmp_path: Path
) -> Callable[..., contextlib.AbstractAsyncContextManager[Deployment]]:
    """Sets up deployments, for tests that have several at once."""

    @contextlib.asynccontextmanager
    async def deploy(name: str, fsync: str = "everysec") -> AsyncIterator[Deployment]:
        folder = tmp_path / name
        folder.mkdir()
        with own_server(fsync) as server:
            async with staged(server.url) as stage:
                child = Children(zygote, stage, folder)
                try:
                    yield Deployment(server, stage, child, child.journal)
                finally:
                    child.destroy()

    return deploy
