"""The screen of ``dtq top``, drawn without a terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from cli.test_rates import queue, sample, worker
from dtq_cli.screen import Size, rate, screen, size_of
from dtq_client.queries.oldest import Waiting
from dtq_client.queries.rates import Figures, figures
from dtq_core.clock import rfc3339
from dtq_core.reads import Memory

PAUSED = rfc3339(0)
SIZES = [Size(80, 24), Size(160, 50)]
each_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.columns}x{size.rows}")


def drawn(found: Figures, size: Size, trouble: str | None = None) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=size.columns, height=size.rows, highlight=False)
    console.print(screen(found, size, "redis://host:6379  dtq", trouble))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def deployment(queues: int, workers: int) -> Figures:
    """Of many queues and workers, the last of which are the busiest."""
    before = [queue(f"queue-{n:03}", succeeded=10**9, dead_lettered=12_345) for n in range(queues)]
    now = [
        queue(f"queue-{n:03}", queued=n, running=n, succeeded=10**9 + 10 * n, dead_lettered=12_345)
        for n in range(queues)
    ]
    task = {"id": "1", "name": "report", "since_ms": 0}
    found = [worker(f"host-{n:03}-1f2e3d4c", 0, *[task] * (n % 9)) for n in range(workers)]
    return figures(sample(0, *before), sample(10, *now, workers=tuple(found)))


@each_size
def test_figures_rows_and_rates_are_shown(size: Size) -> None:
    lines = drawn(deployment(3, 1), size)
    assert re.fullmatch(r"dtq top  \S+  q quits  redis://host:6379  dtq", lines[0])
    assert lines[1] == "waiting 3   delayed 0   retrying 0   running 3   ended 3.0/s over 10 s"
    assert lines[2] == "oldest waiting none   workers 1   memory not told"
    assert lines[3] == "led by nobody: no scheduler runs"
    titles = ["QUEUE", "QUEUED", "SCHEDULED", "RETRYING", "RUNNING", "SUCCEEDED", "DEAD", "ENDED/S"]
    assert lines[5].split() == titles
    counts = ["queue-002", "2", "0", "0", "2", "1,000,000,020", "12,345", "2.0"]
    assert lines[8].split() == counts
    assert lines[10].split() == ["WORKER", "RUNNING", "SEEN", "LONGEST", "TASK"]
    assert lines[11].split()[:2] == ["host-000-1f2e3d4c", "0/8"]
    assert len(lines) == 12


@each_size
def test_what_has_no_room_is_counted_and_the_busiest_stay(size: Size) -> None:
    lines = drawn(deployment(500, 300), size)
    assert len(lines) == size.rows
    assert max(map(len, lines)) <= size.columns
    assert any(line.startswith("queue-499 ") for line in lines)
    assert not any(line.startswith("queue-000 ") for line in lines)
    shown = [line.split()[0] for line in lines if line.startswith("queue-")]
    assert shown == sorted(shown)
    assert f"… and {500 - len(shown)} less busy" in lines
    assert sum(line.startswith("host-") for line in lines) >= 7


def test_a_line_that_just_fits_is_not_cut() -> None:
    found = figures(None, sample(1))
    width = len("waiting 0   delayed 0   retrying 0   running 0   ended …")
    assert drawn(found, Size(width, 24))[1].endswith("ended …")
    assert drawn(found, Size(width - 1, 24))[1].endswith("ended…")


def test_few_queues_leave_their_room_to_the_workers() -> None:
    lines = drawn(deployment(1, 300), Size(80, 24))
    assert len(lines) == 24
    assert sum(line.startswith("host-") for line in lines) == 14
    assert lines[-1] == "… and 286 less busy"


@pytest.mark.parametrize("size", [Size(1, 1), Size(10, 3), Size(40, 9), Size(80, 8)])
def test_no_terminal_is_too_small(size: Size) -> None:
    lines = drawn(deployment(20, 20), size)
    assert max(map(len, lines)) <= size.columns


@each_size
def test_whatever_tasks_and_hosts_are_called_is_inert(size: Size) -> None:
    hostile = "\x1b[31m\u202e[bold]x\n" * 9
    task = {"id": "1", "name": hostile, "since_ms": 0}
    found = figures(
        None, sample(1, queue(hostile, paused_since=PAUSED), workers=(worker(hostile, 0, task),))
    )
    lines = drawn(found, size, trouble=hostile)
    assert len(lines) == 10
    assert all(line.isprintable() for line in lines)
    assert any("[bold]" in line for line in lines)


def test_a_paused_queue_says_so() -> None:
    found = figures(None, sample(1, queue("mail", paused_since=PAUSED)))
    assert any(line.startswith("mail (paused)") for line in drawn(found, Size(80, 24)))


def test_rates_that_are_not_known_yet_are_left_open() -> None:
    lines = drawn(figures(None, sample(1, queue("mail"))), Size(80, 24))
    assert lines[1].endswith("ended …")
    assert lines[6].endswith("…")


def test_trouble_takes_the_first_line_and_the_figures_stay() -> None:
    lines = drawn(deployment(1, 0), Size(80, 24), trouble="Redis at host: Connection refused")
    assert re.fullmatch(r"as of \S+: Redis at host: Connection refused", lines[0])
    assert any(line.startswith("queue-000") for line in lines)


def test_memory_the_oldest_and_the_leaders_are_named() -> None:
    found = figures(
        None,
        sample(1)._replace(
            memory=Memory(3 << 20, 2 << 30),
            oldest={"mail": Waiting("mail", "high", PAUSED, 75)},
            leaders=["scheduler-1", "scheduler-2"],
        ),
    )
    lines = drawn(found, Size(80, 24))
    assert lines[2] == "oldest waiting 1 min, in mail:high   workers 0   memory 3.0 MiB of 2.00 GiB"
    assert lines[3] == "led by scheduler-1, scheduler-2"


def test_numbers_have_as_many_digits_as_mean_something() -> None:
    assert [rate(n) for n in (None, 0, 0.25, 9.96, 12.4, 12_345.6)] == [
        *("…", "0", "0.2", "10.0", "12", "12,346"),
    ]
    assert [size_of(n) for n in (0, 1_500_000, 1 << 30)] == ["0.0 MiB", "1.4 MiB", "1.00 GiB"]


def test_a_queue_that_no_worker_serves_is_marked() -> None:
    size, out = Size(160, 50), io.StringIO()
    console = Console(file=out, width=size.columns, height=size.rows, highlight=False)
    console.print(screen(deployment(2, 0), size, "here", lonely=frozenset({"queue-001"})))
    assert out.getvalue().count("queue-001 (no worker)") == 1
    assert out.getvalue().count("no worker") == 1
