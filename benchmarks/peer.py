"""One system under comparison, run through the command line that ``peers/program.py`` describes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import process_tree

PEERS = Path(__file__).parent / "peers"
NEWEST = ("celery", "dramatiq", "rq", "taskiq", "streaq", "pydocket", "huey")
OLDER_CLIENT = ("arq", "saq")
"""These exclude the client of Redis that the others use."""
NUMBER_BYTES = 8
FIRST_TASK_S = 60
"""So long may a worker take to come up and run its first task."""


@dataclass
class Peer:
    """A program that submits, and workers, which report to a folder of tallies."""

    key: str
    program: list[str]
    url: str
    folder: Path
    about: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.about = self.ask("describe")

    @property
    def name(self) -> str:
        return str(self.about["name"])

    def ask(self, command: str, *numbers: int) -> Any:
        """Run a command to its end and return what it printed."""
        arguments = [*self.program, command, *map(str, numbers)]
        done = subprocess.run(
            arguments, env=self._environment(), cwd=PEERS, stdout=subprocess.PIPE, check=True
        )
        return json.loads(done.stdout.splitlines()[-1])

    def start(self, command: str, processes: int) -> list[subprocess.Popen[bytes]]:
        """Start workers; as many programs as the system needs for so many processes."""
        programs = processes if self.about.get("alone") else 1
        arguments = [*self.program, command, str(processes)]
        log = (self.folder / "worker.log").open("ab")
        with log:
            return [
                subprocess.Popen(
                    arguments, env=self._environment(), cwd=PEERS, stdout=log, stderr=log
                )
                for _ in range(programs)
            ]

    @contextlib.contextmanager
    def worker(self, processes: int) -> Iterator[list[int]]:
        """Workers set up for speed; yields the ids of their programs."""
        started = self.start("worker", processes)
        try:
            yield [process.pid for process in started]
        finally:
            for process in started:
                process_tree.stop(process)

    def forget(self) -> None:
        """Begin to count anew; no worker may run."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def done(self) -> int:
        """How many tasks that do nothing have run."""
        return sum(_number(path) for path in self.folder.glob("count-*"))

    def started_ns(self, tasks: int) -> list[int]:
        """When each numbered task started; 0 stands for not yet."""
        try:
            data = (self.folder / "started").read_bytes()[: tasks * NUMBER_BYTES]
        except FileNotFoundError:
            return [0] * tasks
        found = list(memoryview(data[: len(data) // 8 * 8]).cast("Q"))
        return found + [0] * (tasks - len(found))

    def slept_ns(self) -> list[int]:
        """When the long tasks started."""
        path = self.folder / "sleeps"
        return [int(line) for line in path.read_text("ascii").split()] if path.exists() else []

    def wait_done(self, wanted: int, patience_s: float = 120) -> tuple[int, float]:
        """Wait for so many tasks; return how many had run, and when that was seen."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            done = self.done()
            if done >= wanted:
                return done, time.perf_counter()
            time.sleep(0.01)
        raise TimeoutError(f"{self.name}: {self.done()} of {wanted} ran; see {self.folder}")

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "BENCH_REDIS_URL": self.url,
            "BENCH_TALLY": str(self.folder),
            "PYTHONPATH": str(PEERS),
            "PYTHONWARNINGS": "ignore",
        }


def _number(path: Path) -> int:
    data = path.read_bytes()
    return int.from_bytes(data[:NUMBER_BYTES], sys.byteorder)


def every_peer(url: str, folder: Path, wanted: set[str]) -> list[Peer]:
    """dtq and the peers that this machine can run: BullMQ needs Node."""
    programs = {"dtq": [sys.executable, "program.py", "on_dtq"]}
    for environment, keys in ((".venv-newest", NEWEST), (".venv-older-client", OLDER_CLIENT)):
        python = str(PEERS / environment / "bin" / "python")
        programs |= {key: [python, "program.py", f"on_{key}"] for key in keys}
    node = shutil.which("node")
    if node and (PEERS / "node_modules" / "bullmq").exists():
        programs["bullmq"] = [node, "on_bullmq.mjs"]
    return [
        Peer(key, program, url, folder / key)
        for key, program in programs.items()
        if not wanted or key in wanted
    ]
