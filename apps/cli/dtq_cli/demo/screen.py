"""What is seen while the demo runs: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from dtq_cli.demo.crew import Kill
from dtq_cli.demo.files import Survey
from dtq_cli.demo.layout import labelled
from dtq_cli.demo.ledger import Recovery
from dtq_cli.output import escape
from dtq_cli.words import many
from dtq_core.clock import mono_s
from dtq_core.reads import QueueInfo
from dtq_core.states import Status

_LINE_EVERY_S = 2.0


class Screen:
    """Shows what happens, as it happens."""

    def __init__(self, console: Console) -> None:
        """Show it on a console."""
        self._console = console
        self._live = console.is_terminal and not console.is_dumb_terminal
        self._said_s = 0.0
        self._bar = Progress(
            SpinnerColumn(style="cyan"),
            BarColumn(bar_width=None, complete_style="cyan", pulse_style="cyan"),
            MofNCompleteColumn(),
            TextColumn("{task.fields[now]}", style="dim"),
            console=console,
            disable=not self._live,
            expand=True,
            transient=True,
        )

    def folder(self, found: Survey) -> None:
        """Show what there is to do."""
        size = decimal(sum(file.stamp.size for file in found.files))
        what = f": {many(len(found.files), 'file')}, {size}"
        self._say("folder", Text.assemble((escape(found.root), "bold"), what))
        if found.capped:
            self._say("", "it holds more files than these; how many are taken: --limit")
        if found.left_out:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in found.left_out.items())
            self._say("", f"left out: {reasons}")

    def accepted(self, total: int, pause_s: float) -> None:
        """Show that the tasks are with the queue."""
        self._say(
            "tasks",
            f"{total:,} accepted: one a file (some fail twice first), one that cannot succeed; "
            f"each takes at least {pause_s * 1000:.0f} ms, so that the kill hits some at work",
        )

    def started(self, pids: Sequence[int], version: str) -> None:
        """Show that the workers are there."""
        processes = " and ".join(map(str, pids))
        self._say("workers", f"processes {processes}, supervised, on a private Redis {version}")

    @contextmanager
    def progress(self, total: int) -> Iterator[None]:
        """Show the progress of so many tasks while what stands inside goes on."""
        self._bar.add_task("", total=total, now="")
        self._said_s = mono_s()
        with self._bar:
            yield

    def update(self, ended: int, counters: QueueInfo) -> None:
        """Show how many tasks have ended, and what the others do."""
        running, retrying = counters.tasks[Status.RUNNING], counters.tasks[Status.RETRYING]
        now = f"{running} running, {retrying} to retry"
        for task in self._bar.tasks:
            self._bar.update(task.id, completed=ended, now=now)
        if not self._live and mono_s() - self._said_s >= _LINE_EVERY_S:
            self._said_s = mono_s()
            self._say("", f"{ended:,} ended, {now}")

    def killed(self, kill: Kill, running: int) -> None:
        """Show that a worker was killed."""
        self._say(
            "kill",
            f"[bold]SIGKILL for {kill.pid}[/], in the middle of {many(running, 'task')}, "
            f"when {kill.after:,} had ended",
            "red",
        )

    def recovered(self, seen: Recovery) -> None:
        """Show that what the killed worker ran is running again."""
        which = "all of them" if seen.back == seen.running else f"{seen.back} of {seen.running}"
        self._say("", f"[bold green]{which} running again {seen.after_s:.2f} s later[/]")

    def _say(self, label: str, text: Text | str, colour: str = "cyan") -> None:
        self._console.print(labelled(label, text, colour))
