"""The server under the benchmarks, and what it says of itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtq import Client


class Server:
    """A look at the server through a client's own connection."""

    def __init__(self, client: Client) -> None:
        self._link = client.store.link

    def info(self, section: str) -> dict[str, Any]:
        return dict(self._link.command("INFO", section))

    def empty(self) -> None:
        self._link.command("FLUSHALL")

    def used_bytes(self) -> int:
        return int(self.info("memory")["used_memory"])

    def cpu_s(self) -> float:
        cpu = self.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def commands(self) -> int:
        """All commands so far, those inside of scripts as well."""
        return sum(int(stats["calls"]) for stats in self.info("commandstats").values())

    def network_bytes(self) -> int:
        """All bytes so far, in both directions."""
        stats = self.info("stats")
        return int(stats["total_net_input_bytes"]) + int(stats["total_net_output_bytes"])

    def succeeded(self, queues: Sequence[str] = ("default",)) -> int:
        counts = [("HGET", f"dtq:stats:{queue}", "SUCCEEDED") for queue in queues]
        return sum(int(count or 0) for count in self._link.pipeline(counts))


def describe(server: Server) -> dict[str, str]:
    """The conditions under which the figures hold."""
    persistence = server.info("persistence")
    info = server.info("server")
    return {
        "machine": f"{os.cpu_count()} cores, {_cpu_model()}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "server": f"{info.get('server_name', 'redis')} {info['redis_version']}",
        "persistence": "AOF" if int(persistence["aof_enabled"]) else "none",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
