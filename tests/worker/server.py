"""A Redis server that a test may hurt."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import redis
import redis.asyncio

from dtq_core.embedded import find_server


class Server:
    """A server of a test's own, with an append-only file, so that a kill loses nothing."""

    def __init__(self, folder: Path, fsync: str = "everysec") -> None:
        self.url = f"unix://{folder}/r.sock"
        self._command = [
            *(str(find_server()), "--port", "0", "--unixsocket", f"{folder}/r.sock"),
            *("--dir", str(folder), "--save", "", "--appendonly", "yes", "--appendfsync", fsync),
            *("--loglevel", "warning", "--logfile", f"{folder}/redis.log"),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command)
        while not self._answers():
            time.sleep(0.01)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def command(self, *args: Any) -> Any:
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*args)

    def connection(self) -> redis.asyncio.Redis:
        """A client with one connection."""
        return redis.asyncio.Redis.from_url(self.url, single_connection_client=True)

    def _answers(self) -> bool:
        try:
            return bool(self.command("PING"))
        except redis.ConnectionError:
            return False
