"""``make bench-peers``: dtq beside other task queues, on one server, in turns.

In each round every system does every measure on an emptied server; the median of the rounds counts.
What each system is asked stands in ``peers/program.py``, how it is set up in ``peers/on_*.py``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import recovery
from bench_server import Server, describe
from dtq import Client
from dtq_core.embedded import start_temporary
from measures import percentiles
from peer import Peer, every_peer
from side_by_side import HALF_LOAD, IDLE, one_round

ROUNDS = 3
RECOVERY = "recovery after SIGKILL, s"

Figures = dict[str, dict[str, float]]
"""Of each system, each measure."""


class Findings:
    """What was measured of each system, round by round."""

    def __init__(self) -> None:
        self.figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.latencies: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))

    def add(self, peer: Peer, server: Server) -> None:
        figures, latencies = one_round(peer, server)
        for name, value in figures.items():
            self.figures[peer.name][name].append(value)
        for name, taken in latencies.items():
            self.latencies[peer.name][name] += taken

    def medians(self) -> Figures:
        """The median of the rounds; latencies of all rounds count as one sample."""
        found = {}
        for name, measured in self.figures.items():
            figures = {measure: median(values) for measure, values in measured.items()}
            for label in (IDLE, HALF_LOAD):
                if taken := self.latencies[name][label]:
                    figures |= percentiles(label, taken)
            found[name] = figures
        return found


def compare(server: Server, peers: list[Peer], rounds: int) -> Iterator[Figures]:
    """Let the systems take turns, so that a slow minute of the machine meets all of them.

    Yields the medians after each round.
    """
    findings = Findings()
    console = Console(stderr=True)
    for number in range(rounds):
        for peer in peers:
            console.print(f"round {number + 1} of {rounds}: {peer.name}", highlight=False)
            findings.add(peer, server)
        yield findings.medians()


def show(about: list[dict[str, Any]], figures: Figures) -> None:
    """Print how each system was set up, and a table with a column for each."""
    console = Console(width=200)
    for system in about:
        early = (
            " ACKNOWLEDGES BEFORE THE HANDLER RUNS" if system["acknowledges"] == "before" else ""
        )
        console.print(f"{system['name']} {system['version']}: {system['setting']}{early}")
    table = Table("measure", *figures)
    for measure in figures["dtq"]:
        table.add_row(measure, *(_text(of_one.get(measure)) for of_one in figures.values()))
    console.print(table)


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redis-server", help="the server program; unless given, one is found")
    parser.add_argument("--persistence", default="no", choices=["no", "everysec", "always"])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="*", default=[], metavar="SYSTEM", help="beside dtq")
    parser.add_argument("--no-recovery", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    wanted = {"dtq", *options.only} if options.only else set()
    server_options = {"redis_server": options.redis_server, "persistence": options.persistence}
    with (
        tempfile.TemporaryDirectory(prefix="dtq-bench-") as folder,
        start_temporary(Path(folder, "redis"), port=None, **server_options) as redis,
        Client(redis.url) as client,
    ):
        server = Server(client)
        conditions = describe(server)
        peers = every_peer(redis.url, Path(folder), wanted)
        found = {"conditions": conditions, "systems": [peer.about for peer in peers]}
        for figures in compare(server, peers, options.rounds):
            found["figures"] = figures
            _write(found, options.json)
    if not options.no_recovery:
        for name, taken in recovery.measure(options.redis_server, wanted).items():
            figures[name][RECOVERY] = taken
        _write(found, options.json)
    show(found["systems"], figures)


def _write(found: dict[str, Any], path: Path | None) -> None:
    if path:
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
