"""``dtq stats``: a whole deployment in figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtq_cli.options import Common
from dtq_cli.output import Column, print_fields, print_json, print_line, print_table
from dtq_cli.times import duration
from dtq_client.queries.counters import PartitionStats, Stats, statistics

_PARTITION_COLUMNS = (
    Column("PARTITION"),
    Column("WAITING", right=True),
    Column("RUNNING", right=True),
    Column("ENDED", right=True),
    Column("LEADER", folded=True),
)


def stats(common: Common) -> None:
    """Show figures.

    Tasks by status, entries in the dead-letter stream, the oldest task that waits for a worker, how
    many queues and workers there are, and who leads; of several partitions, each one.

    The oldest waiting task is exact and costs the same however many wait: of each stream only the
    first entry that no worker was given and the first that was given back are looked at.
    """
    with common.store() as store:
        figures = statistics(store)
    if common.json:
        print_json(figures)
        return
    print_fields(_fields(figures))
    if len(figures.partitions) > 1:
        print_line("")
        print_table(_PARTITION_COLUMNS, map(_row, figures.partitions))


def _fields(figures: Stats) -> Iterator[tuple[str, object]]:
    for status, count in figures.tasks.items():
        yield status.lower().replace("_", " "), f"{count:,}"
    yield "dead letters kept", f"{figures.dead_letters:,}"
    yield "oldest waiting", _oldest(figures)
    yield "queues", f"{figures.queues:,}"
    yield "workers", f"{figures.workers:,}"
    yield "led by", _leaders(figures.partitions)


def _oldest(figures: Stats) -> str:
    oldest = figures.oldest_waiting
    if oldest is None:
        return "none"
    return f"{duration(oldest.seconds)}, in {oldest.queue}:{oldest.band}"


def _leaders(partitions: Sequence[PartitionStats]) -> str:
    names = sorted({partition.leader for partition in partitions if partition.leader})
    return ", ".join(names) or "nobody: no scheduler runs"


def _row(partition: PartitionStats) -> tuple[object, ...]:
    counts = (partition.waiting, partition.running, partition.ended)
    return partition.prefix, *(f"{count:,}" for count in counts), partition.leader
