"""What the demo's workers run: one task for each file, and one that cannot succeed."""

from __future__ import annotations

import time

import msgspec

from dtq import Context, GiveUp, exponential, task
from dtq_cli.demo.files import decode_path
from dtq_cli.demo.finding import Finding, read_in_pieces
from dtq_cli.demo.journal import recorded

QUEUE = "demo"

job = task(queue=QUEUE, retry=exponential(base=0.2, cap=1))


class Run(msgspec.Struct, frozen=True):
    """What all tasks of one run of the demo are told.

    Attributes:
        journal: the file in which each start of a handler is recorded.
        pause_s: how long a task takes at least, so that a worker can be killed in the middle of it.
        max_bytes: the largest file.
    """

    journal: str
    pause_s: float
    max_bytes: int


class FailedOnPurpose(Exception):
    """The demo wants this attempt to fail."""


@job(name="demo.examine", max_attempts=5)
def examine(ctx: Context, path: str, failures: int, run: Run) -> Finding:
    """Find out what a file holds; the first ``failures`` attempts fail on purpose."""
    with recorded(run.journal, ctx):
        time.sleep(run.pause_s)
        if ctx.attempt <= failures:
            raise FailedOnPurpose(f"attempt {ctx.attempt} of this task is meant to fail")
        try:
            return read_in_pieces(decode_path(path), run.max_bytes)
        except OSError as error:
            raise GiveUp(f"the file cannot be read: {error.strerror}") from error


@job(name="demo.hopeless", max_attempts=3)
def hopeless(ctx: Context, run: Run) -> None:
    """Fail, however often it is tried."""
    with recorded(run.journal, ctx):
        time.sleep(run.pause_s)
        raise FailedOnPurpose("this task cannot succeed")
