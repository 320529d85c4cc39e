"""A Redis server of a test's own, to be stopped, filled up and made read-only."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import redis

_LIMIT_S = 10.0


class OwnServer:
    """Keeps its data over a restart, and its address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        arguments = ["--port", str(self._port), "--dir", str(self._folder), "--save", ""]
        arguments += ["--appendonly", "yes", "--enable-debug-command", "local"]
        self._process = subprocess.Popen(
            ["redis-server", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _LIMIT_S
        while not self._answers():
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.01)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_LIMIT_S)
            self._process = None

    def command(self, *args: str) -> object:
        with redis.Redis.from_url(self.url) as link:
            return link.execute_command(*args)

    def _answers(self) -> bool:
        try:
            return bool(self.command("PING"))
        except redis.RedisError:
            return False
