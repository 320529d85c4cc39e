"""``dtq dlq``: dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import typer

from dtq_cli.commands.attempts import print_attempts
from dtq_cli.options import Common, DryRun, Reason, TaskId, Yes, confirm, operator
from dtq_cli.output import Column, note, print_fields, print_json, print_line, print_table, to_json
from dtq_cli.progress import Progress
from dtq_cli.times import age, local
from dtq_cli.words import many
from dtq_client.operating.letters import (
    Done,
    Filter,
    count_failed,
    describe,
    discard,
    find_letters,
    requeue,
)
from dtq_core.errors import InvalidOptionError
from dtq_core.limits import check_count, check_duration_ms
from dtq_core.reads import Letter
from dtq_core.states import Status
from dtq_core.store import Store

_MOST = 100_000
_NO_LETTER = "none: the task is FAILED, as it was not to become a dead letter"
_SHOWN_EXAMPLES = 5
_MOST_PER_SECOND = 1_000_000
_COLUMNS = (
    Column("ID"),
    Column("NAME", cut=True),
    Column("QUEUE", cut=True),
    Column("ATTEMPT", right=True, extra=True),
    Column("AGE", right=True),
    Column("REASON", cut=True),
)

Ids = Annotated[
    list[str] | None,
    typer.Argument(help="Only these tasks.", metavar="ID", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The options that choose dead letters."""

    queue: Annotated[
        str | None, typer.Option("--queue", "-q", help="Only this queue.", show_default=False)
    ] = None
    task: Annotated[
        str | None,
        typer.Option("--task", help="Only tasks of this name.", metavar="NAME", show_default=False),
    ] = None
    error: Annotated[
        str | None,
        typer.Option(
            "--error",
            help="Only where the last attempt failed with this type of error.",
            metavar="TYPE",
            show_default=False,
        ),
    ] = None
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than",
            help="Only those dead for longer.",
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None
    newer_than: Annotated[
        float | None,
        typer.Option(
            "--newer-than", help="Only those dead for less.", metavar="SECONDS", show_default=False
        ),
    ] = None

    def filter(self, ids: Sequence[str] | None = None) -> Filter:
        """Return what is meant. Errors as of :class:`Filter`, and for ages out of bounds."""
        for name, age_s in (("--older-than", self.older_than), ("--newer-than", self.newer_than)):
            if age_s is not None:
                check_duration_ms(name, age_s)
        return Filter(
            queue=self.queue,
            task=self.task,
            error=self.error,
            older_than_s=self.older_than,
            newer_than_s=self.newer_than,
            ids=tuple(ids or ()),
        )

    def filter_or_all(self, ids: Sequence[str] | None, everything: bool) -> Filter:
        """Return the same; nobody means all of them by naming none."""
        wanted = self.filter(ids)
        if (wanted == Filter()) is not everything:
            raise InvalidOptionError("name tasks, or give filters, or --all")
        return wanted


def list_letters(
    common: Common,
    chosen: Chosen,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 50,
) -> None:
    """List dead letters.

    The name of the task, the number of the attempt and the type of the error are those of its
    record; the reason is what was written when it was given up.
    """
    check_count("--limit", limit, _MOST)
    wanted = chosen.filter()
    with common.store() as store:
        found = list(islice(find_letters(store, wanted), limit + 1))
    if common.json:
        print_json(found[:limit])
    else:
        print_table(_COLUMNS, map(_row, found[:limit]))
    if len(found) > limit:
        note(f"there are more than these {limit}: ask for more with --limit")


def _row(letter: Letter) -> tuple[object, ...]:
    reason = letter.reason if not letter.requeues else f"{letter.reason} (requeued before)"
    return letter.id, letter.name, letter.queue, letter.attempt, age(letter.at), reason


def show_letter(task_id: TaskId, common: Common) -> None:
    """Show a dead letter.

    Or a task that is `FAILED`: it has no dead letter, but may be requeued by its id like one.
    `dtq attempts ID --json` has the tracebacks.
    """
    with common.store() as store:
        found = describe(store, task_id)
    if common.json:
        print_json(found)
        return
    letter = found.letter
    print_fields(
        [
            ("id", letter.id),
            ("name", letter.name),
            ("queue", letter.queue),
            ("failed" if found.status is Status.FAILED else "dead since", local(letter.at)),
            ("dead letter", _NO_LETTER if found.status is Status.FAILED else None),
            ("reason", letter.reason),
            ("requeues", letter.requeues or None),
            ("args", None if found.args is None else to_json(found.args)),
            ("kwargs", None if found.kwargs is None else to_json(found.kwargs)),
        ]
    )
    print_line("")
    print_attempts(found.attempts)


def requeue_letters(
    common: Common,
    chosen: Chosen,
    ids: Ids = None,
    everything: All = False,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="How many a second at most.", metavar="N", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Requeue dead letters.

    Tasks are named by their ids (then also those that are `FAILED`, which have no dead letter), by
    filters, or all of them by `--all`. It asks first, with their number, unless tasks are named or
    `--yes` is given. Batch by batch they become `QUEUED`: the attempt is 1 again, the history
    stays. Interrupted, the rest is as it was, and the command can be repeated. Exits with 1 where a
    task that was named did not fail.
    """
    wanted = chosen.filter_or_all(ids, everything)
    if rate is not None and not 0 < rate <= _MOST_PER_SECOND:
        raise InvalidOptionError(f"--rate is out of range: use 0 to {_MOST_PER_SECOND:,} a second")
    with common.store() as store:
        if dry_run and wanted.ids:
            _say(common, count_failed(store, wanted.ids), "requeued")
            return
        if dry_run:
            _try(common, store, wanted, "requeued")
            return
        if not wanted.ids:
            confirm(f"Requeue {many(_count(store, wanted), 'dead letter')}?", yes=yes)
        with Progress("requeued") as progress:
            done = requeue(store, wanted, operator(), reason, rate=rate, progress=progress)
    _tell(common, done, "requeued")
    _tell_missed(
        len(set(wanted.ids)) - done.changed,
        "of the named tasks did not fail",
        "of the named tasks did not fail",
    )


def purge_letters(
    common: Common,
    chosen: Chosen,
    ids: Ids = None,
    everything: All = False,
    dry_run: DryRun = False,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Purge dead letters.

    Named as for `dtq dlq requeue`, but a task that is `FAILED` has none to purge, and ends with its
    retention. It asks first, with their number, unless `--yes` is given. What
    is removed cannot be brought back; its ids stay in the audit log.
    """
    wanted = chosen.filter_or_all(ids, everything)
    with common.store() as store:
        if dry_run:
            _try(common, store, wanted, "removed for good")
            return
        confirm(f"Remove {many(_count(store, wanted), 'dead letter')} for good?", yes=yes)
        with Progress("removed") as progress:
            done = discard(store, wanted, operator(), reason, progress=progress)
    _tell(common, done, "removed")
    _tell_missed(
        len(set(wanted.ids)) - done.changed,
        "of the named tasks is no dead letter; what is FAILED ends with its retention",
        "of the named tasks are no dead letters; what is FAILED ends with its retention",
    )


def _count(store: Store, wanted: Filter) -> int:
    return sum(1 for _ in find_letters(store, wanted))


def _try(common: Common, store: Store, wanted: Filter, word: str) -> None:
    """Say what would be done."""
    examples: list[Letter] = []
    count = 0
    for letter in find_letters(store, wanted):
        count += 1
        if len(examples) < _SHOWN_EXAMPLES:
            examples.append(letter)
    _say(common, count, word)
    if examples and not common.json:
        print_table(_COLUMNS, map(_row, examples))


def _say(common: Common, count: int, word: str) -> None:
    if common.json:
        print_json(Done(count, 0))
    else:
        print_line(f"{many(count, 'dead letter')} would be {word}")


def _tell(common: Common, done: Done, word: str) -> None:
    """Say what was done."""
    if common.json:
        print_json(done)
    else:
        print_line(f"{done.changed:,} of {many(done.matched, 'was', 'were')} {word}")


def _tell_missed(count: int, one: str, more: str) -> None:
    """Say how many tasks were named in vain, which is a failure."""
    if count > 0:
        note(many(count, one, more))
        raise typer.Exit(1)
