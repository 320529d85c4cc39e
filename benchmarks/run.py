"""``make bench``: the speed of dtq on this machine, beside what the machine allows.

No test asserts a time; these figures are for people. Ratios within one run count.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ceilings
import due
import growth
import measures
import over_http
from bench_server import Server, describe
from dtq import Client
from dtq_core.embedded import start_temporary

GOALS = {
    "drain of 50,000, tasks/s": "≥ 12,000",
    "submit_many, tasks/s": "≥ 30,000",
    "submit, tasks/s": "≥ 4,000",
    "start latency idle, p50 ms": "≤ 1",
    "start latency idle, p99 ms": "≤ 3",
    "HTTP, single submissions/s": "≥ 2,000",
    "HTTP, tasks/s in batches": "≥ 20,000",
    "memory, bytes/waiting task": "≤ 450",
    "memory, bytes/finished task": "≤ 700",
    "delayed start, late by, p99 ms": "≤ 50",
    "promotion of many due at once, tasks/s": "≥ 20,000",
    "PING beside it, p99 ms": "≤ 50",
    "drain, 1,000,000 waiting, tasks/s": "≥ 0.9 of 1,000",
    "drain, 100 queues, tasks/s": "≥ 0.8 of 1",
    "drain, appendfsync always, tasks/s": "≥ 0.5 of no",
}


def measure(
    client: Client, server: Server, redis_server: str | None, scale: float
) -> dict[str, float]:
    """Run every measure; ``scale`` shortens it for a quick look."""

    def scaled(tasks: int, least: int = 1_000) -> int:
        return max(least, int(tasks * scale))

    figures: dict[str, float] = {}
    figures |= ceilings.bare_streams(client, server, scaled(50_000))
    figures |= ceilings.same_writes(client, server, scaled(50_000))
    figures |= ceilings.hand_over(client, server, scaled(1_000))
    figures |= measures.bare_round_trips(client, scaled(10_000))
    figures |= measures.single_submission(client, server, scaled(10_000))
    figures |= measures.bulk_submission(client, server, scaled(100_000))
    figures |= over_http.single(client, server, scaled(10_000))
    figures |= over_http.batch(client, server, scaled(100_000))
    figures |= measures.memory(client, server, scaled(50_000))
    tasks = scaled(50_000)
    figures |= measures.drain(client, server, tasks, f"{tasks:,}")
    figures |= measures.start_latency(client, server, scaled(1_000))
    figures |= due.lateness(client, server, scaled(1_000))
    figures |= due.promotion(client, server, scaled(100_000, least=20_000))
    figures |= growth.measure(client, server, redis_server, scale)
    return figures


def show(conditions: dict[str, str], figures: dict[str, float]) -> None:
    """Print the conditions and a table."""
    console = Console()
    for name, value in conditions.items():
        console.print(f"{name:12} {value}", highlight=False)
    table = Table("measure", "figure", "goal")
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}" if value < 10 else f"{value:,.0f}", GOALS.get(name, ""))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redis-server", help="the server program; unless given, one is found")
    parser.add_argument("--persistence", default="no", choices=["no", "everysec", "always"])
    parser.add_argument("--scale", type=float, default=1.0, help="0.1 for a quick look")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="dtq-bench-") as folder,
        start_temporary(
            Path(folder),
            redis_server=options.redis_server,
            persistence=options.persistence,
        ) as redis,
        Client(redis.url) as client,
    ):
        server = Server(client)
        conditions = describe(server)
        figures = measure(client, server, options.redis_server, options.scale)
    show(conditions, figures)
    if options.json:
        found = {"conditions": conditions, "figures": figures}
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    sys.exit(main())
