"""Fixtures for the tests of workers and schedulers."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from worker.processes import Child, Crew, Journal, Zygote
from worker.server import Server
from worker.stage import Stage, staged


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dtq") as folder:
        socket = Path(folder) / "r.sock"
        server = subprocess.Popen(
            [
                "redis-server",
                "--port",
                "0",
                "--unixsocket",
                str(socket),
                "--save",
                "",
                "--dir",
                folder,
            ],
            stdout=subprocess.DEVNULL,
        )
        while not socket.exists():
            time.sleep(0.01)
        yield f"unix://{socket}"
        server.terminate()
        server.wait()


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async with staged(redis_url) as made:
        yield made


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture
def child(
    zygote: Zygote, stage: Stage, journal: Journal, tmp_path: Path
) -> Iterator[Callable[..., Child]]:
    """Starts worker processes, which end with the test."""
    made: list[Child] = []

    def start(**overrides: Any) -> Child:
        log = tmp_path / "children.log"
        made.append(Child(zygote, stage.settings(**overrides), journal, log))
        return made[-1]

    yield start
    for each in made:
        each.destroy()


@pytest.fixture
def crew(stage: Stage, journal: Journal, tmp_path: Path) -> Iterator[Callable[..., Crew]]:
    """Starts supervisors, which end with the test."""
    made: list[Crew] = []

    def start(*modules: str, path: Path = tmp_path, **overrides: Any) -> Crew:
        log = tmp_path / f"crew{len(made)}.log"
        made.append(Crew(stage.settings(**overrides), journal, log, *modules, path=path))
        return made[-1]

    yield start
    for each in made:
        each.destroy()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that the test may hurt; its socket needs a short path."""
    folder = Path(tempfile.mkdtemp(prefix="dtq"))
    made = Server(folder)
    yield made
    made.kill()
    shutil.rmtree(folder)
