"""``make bench-check``: fails when a task has become a fifth dearer than recorded.

Nothing here is an absolute time. Each cost is a count (commands and bytes that a task costs the
server), or a ratio to work of the same kind in the same run: Redis and wall time to the ceiling of
the same writes, time of Python to a loop of plain Python. ``--record`` writes what is measured to
``recorded.json``: do that with a change that is meant to cost what it costs, and say why.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import ceilings
import measures
from bench_server import Server
from dtq import Client
from dtq_core.embedded import start_temporary
from workload import noop

RECORDED = Path(__file__).with_name("recorded.json")
DEARER = 1.2
ROUNDS = 3
TASKS = 20_000
LOOPS = 40_000


def costs(client: Client, server: Server) -> dict[str, float]:
    """Measure one round."""
    python_us = _python_us()
    ceiling = ceilings.same_writes(client, server, TASKS)["ceiling: the same writes, tasks/s"]
    commands, network = server.commands(), server.network_bytes()
    drain = measures.drain(client, server, TASKS, "these")
    commands, network = server.commands() - commands, server.network_bytes() - network
    submit_us = _submit_cpu_us(client, server)
    return {
        "drain, in times of the same writes": ceiling / drain["drain of these, tasks/s"],
        "drain, Redis CPU in times of the same writes": drain["drain of these, Redis CPU µs/task"]
        * ceiling
        / 1e6,
        "drain, worker CPU in loops of Python": drain["drain of these, worker CPU µs/task"]
        / python_us,
        "submit many, client CPU in loops of Python": submit_us / python_us,
        "submit and drain, commands/task": commands / TASKS,
        "submit and drain, network bytes/task": network / TASKS,
        **measures.memory(client, server, TASKS),
    }


def _python_us() -> float:
    """The time of this process for one turn of a loop as the hot path has many."""
    begin = time.process_time()
    for number in range(LOOPS):
        text = json.dumps({"id": number, "args": ["x", number], "name": "noop"})
        json.loads(text)
    return (time.process_time() - begin) / LOOPS * 1e6


def _submit_cpu_us(client: Client, server: Server) -> float:
    server.empty()
    calls = [(measures.FIFTY_BYTES,)] * TASKS
    begin = time.process_time()
    client.submit_many(noop, calls)
    return (time.process_time() - begin) / TASKS * 1e6


def dearer(found: dict[str, float], recorded: dict[str, float]) -> list[str]:
    """Return what costs a fifth more than recorded."""
    return [name for name, cost in found.items() if cost > recorded[name] * DEARER]


def show(found: dict[str, float], recorded: dict[str, float]) -> None:
    table = Table("cost", "recorded", "now", "now/recorded")
    for name, cost in found.items():
        before = recorded[name]
        table.add_row(name, f"{before:.2f}", f"{cost:.2f}", f"{cost / before:.2f}")
    Console().print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redis-server", help="the server program; unless given, one is found")
    parser.add_argument("--record", action="store_true", help="these costs are meant")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="dtq-bench-") as folder,
        start_temporary(Path(folder), redis_server=options.redis_server) as redis,
        Client(redis.url) as client,
    ):
        rounds = [costs(client, Server(client)) for _ in range(ROUNDS)]
    found = {name: median(each[name] for each in rounds) for name in rounds[0]}
    if options.record:
        rounded = {name: round(cost, 3) for name, cost in found.items()}
        RECORDED.write_text(json.dumps(rounded, indent=2, ensure_ascii=False) + "\n", "utf-8")
    recorded = json.loads(RECORDED.read_text("utf-8"))
    show(found, recorded)
    for name in (worse := dearer(found, recorded)):
        print(f"a fifth dearer than recorded: {name}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
