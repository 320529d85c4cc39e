"""A terminal: ``dtq`` as real processes, in a folder and a deployment of a test's own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import redis

from dtq import Client

LIMIT_S = 60.0

HANDLERS = """
import asyncio
from pathlib import Path
from typing import Any

from dtq import Context, fixed, task


@task
async def add(a: int, b: int) -> int:
    return a + b


@task(queue="mail")
async def sleep(ctx: Context, seconds: float) -> str:
    Path(f"{ctx.task_id}.started").touch()
    await asyncio.sleep(seconds)
    return "rested"


@task(retry=fixed(0.05))
def fail(text: str) -> None:
    raise ValueError(text)


@task
async def echo(value: Any) -> Any:
    return value


@task(max_attempts=1)
async def not_a_number() -> float:
    return float("nan")
"""

BRISK = {
    "visibility_timeout": 2,
    "reaper_interval": 0.5,
    "scheduler_tick": 0.02,
    "leader_lease": 1,
    "shutdown_grace": 2,
    "processes": 1,
    "concurrency": 8,
    "connect_timeout": 2,
    "retry_timeout": 1,
    "log_level": "warning",
}


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class Terminal:
    """Runs commands; the environment names the deployment, as a user's would."""

    def __init__(self, folder: Path, url: str | None, **settings: Any) -> None:
        self.folder = folder
        self.prefix = f"t{secrets.token_hex(4)}"
        self.raw = redis.Redis.from_url(url) if url else None
        values = {**BRISK, "prefix": self.prefix, "redis_url": url, **settings}
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("DTQ_", "COLUMNS"))}
        given = {f"DTQ_{k.upper()}": str(v) for k, v in values.items() if v is not None}
        self.environ = clean | given
        self.client = Client(**values) if url else None
        self._started: list[subprocess.Popen[str]] = []
        (folder / "handlers.py").write_text(HANDLERS)

    def start(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """Start a command in a process group of its own, as a shell does."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dtq_cli.main", *arguments],
            cwd=self.folder,
            env=self.environ | {f"DTQ_{k.upper()}": str(v) for k, v in settings.items()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def run(self, *arguments: str, stdin: str = "", **settings: Any) -> Done:
        """Run a command to its end."""
        process = self.start(*arguments, **settings)
        out, err = process.communicate(stdin, timeout=LIMIT_S)
        return Done(process.returncode, out, err)

    def ok(self, *arguments: str, **settings: Any) -> str:
        """Run a command that is to succeed and to say nothing on stderr; return its output."""
        done = self.run(*arguments, **settings)
        assert (done.code, done.err) == (0, "")
        return done.out

    def json(self, *arguments: str, **settings: Any) -> Any:
        """The same with ``--json``: one value on one line."""
        out = self.ok(*arguments, "--json", **settings)
        assert out.count("\n") == 1
        assert out.endswith("\n")
        return json.loads(out)

    def submit(self, name: str, *args: Any, **options: Any) -> str:
        """Submit a task, from here, and return its id."""
        return self.client.submit_by_name(name, args, **options).id

    def started(self, task_id: str) -> None:
        """Wait until the handler of a ``sleep`` has begun: ``RUNNING`` is said before that."""
        eventually("it starts", (self.folder / f"{task_id}.started").exists)

    def ended(self, task_id: str) -> str:
        """Wait for the end of a task; return its status."""
        eventually("it ends", lambda: self.client.get(task_id).status.terminal)
        return self.client.get(task_id).status

    def start_worker(self, *arguments: str, **settings: Any) -> subprocess.Popen[str]:
        """Start workers and wait until one lives."""
        process = self.start("worker", "handlers", *arguments, **settings)

        def lives() -> Any:
            assert process.poll() is None, process.communicate()
            return self.raw.exists(f"{self.prefix}:workers")

        eventually("a worker lives", lives)
        return process

    def keys(self) -> dict[bytes, bytes | None]:
        """Everything that is stored under the prefix."""
        found = sorted(self.raw.scan_iter(f"{self.prefix}:*"))
        return {key: self.raw.dump(key) for key in found}

    def close(self) -> None:
        """End what runs, with its children, and forget what is stored."""
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if self.client is not None:
            self.client.close()
            for key in self.raw.scan_iter(f"{self.prefix}:*"):
                self.raw.delete(key)
            self.raw.close()


def stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> Done:
    """Send a signal to a command, wait for its end, and return what it has said."""
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    return Done(process.returncode, out, err)


def eventually(what: str, probe: Callable[[], Any], limit_s: float = 20.0) -> Any:
    """Wait until a probe answers something true, and return that."""
    end = time.monotonic() + limit_s
    while not (found := probe()):
        assert time.monotonic() < end, f"waited {limit_s:g} s for: {what}"
        time.sleep(0.02)
    return found
