"""``dtq top``: queues, workers and rates, live."""

from __future__ import annotations

import itertools
import sys
import time
from typing import Annotated

import typer
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from dtq_cli.keyboard import Keyboard, ended_in_order
from dtq_cli.options import Common
from dtq_cli.output import note, print_json
from dtq_cli.screen import Size, screen
from dtq_client.queries.counters import unserved
from dtq_client.queries.rates import Sample, Window
from dtq_client.queries.sampling import take_sample
from dtq_core.errors import InvalidOptionError, RedisUnavailableError
from dtq_core.limits import check_count
from dtq_core.store import Store

_SPAN_S = 10.0
"""Rates on the screen are taken over so many seconds: those of a second jump too much to read."""
_SHORTEST_S = 0.1
_LONGEST_S = 3_600.0
_MOST = 1_000_000
_QUIT = frozenset("qQ\x04")


def top(
    common: Common,
    interval: Annotated[
        float, typer.Option("--interval", help="Seconds from one look to the next.")
    ] = 1.0,
    count: Annotated[
        int | None,
        typer.Option("--count", help="With --json: how many objects.", show_default=False),
    ] = None,
) -> None:
    """Show a live view.

    On top the deployment: tasks by status, how many ended a second, the entry that has waited
    longest for a worker, the memory of Redis, and who leads. Below, each queue and each worker,
    with the task that it has been running for longest; where the terminal is too small for all,
    the busiest. `q` ends it, any other key looks again at once.

    Rates are the differences of exact counters, over the last 10 s; they cost the workers nothing.
    While Redis is away, the last figures stay under a line that says so.

    With `--json` it writes one object a line every interval, and needs no terminal. Its rates are
    over the time since the line before, `over_seconds`.
    """
    if not _SHORTEST_S <= interval <= _LONGEST_S:
        raise InvalidOptionError(
            f"--interval {interval} is out of range: use {_SHORTEST_S:g} to {_LONGEST_S:g} seconds"
        )
    if count is not None:
        check_count("--count", count, _MOST)
    if common.json:
        with common.store(retry_timeout=0) as store:
            _write(store, interval, count)
        return
    if count is not None:
        raise InvalidOptionError("--count is for --json only")
    if not sys.stdout.isatty():
        raise InvalidOptionError("dtq top needs a terminal; for programs there is --json")
    with common.store(retry_timeout=0) as store:
        _show(store, interval)


def _write(store: Store, interval_s: float, count: int | None) -> None:
    """Write figures as JSON, the first once there is something to compare with."""
    window = Window(0)
    window.add(take_sample(store))
    for _ in itertools.count() if count is None else range(count):
        time.sleep(interval_s)
        print_json(window.add(_next_sample(store, interval_s)))


def _next_sample(store: Store, interval_s: float) -> Sample:
    """Wait for a server that is away, and say so once."""
    said = False
    while True:
        try:
            return take_sample(store)
        except RedisUnavailableError as error:
            if not said:
                note(str(error))
            said = True
            time.sleep(interval_s)


def _show(store: Store, interval_s: float) -> None:
    view = _View(store)
    console = Console(highlight=False, force_terminal=True, force_interactive=True)
    with (
        ended_in_order(),
        Keyboard() as keyboard,
        Live(view, console=console, screen=True) as live,
    ):
        while not _QUIT & set(keyboard.pressed(interval_s)):
            view.look()
            live.refresh()


class _View:
    """What is on the screen; drawn anew for the size that the terminal has then."""

    def __init__(self, store: Store) -> None:
        """Take the first look.

        Raises:
            RedisError: if the server cannot say.
        """
        self._store = store
        self._where = f"{store.link.where}  {store.partitions.prefix}"
        self._window = Window(_SPAN_S)
        self._trouble: str | None = None
        self._take(take_sample(store))

    def look(self) -> None:
        """Take another look; while the server is away, that is what there is to be seen."""
        try:
            self._take(take_sample(self._store))
            self._trouble = None
        except RedisUnavailableError as error:
            self._trouble = str(error)

    def _take(self, sample: Sample) -> None:
        self._figures = self._window.add(sample)
        self._lonely = unserved(sample.queues, sample.workers)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        size = Size(options.size.width, options.size.height)
        yield screen(self._figures, size, self._where, self._trouble, self._lonely)
