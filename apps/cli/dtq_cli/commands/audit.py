"""``dtq audit``: what operators did; and whether the log of it is as it was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dtq_cli.options import Common
from dtq_cli.output import Column, note, print_json, print_line, print_table
from dtq_cli.times import moment
from dtq_cli.words import many
from dtq_client.queries.audit import Act, Verdict, check_log, newest_acts
from dtq_core.limits import check_count

_MOST = 100_000
_COLUMNS = (
    Column("AT"),
    Column("ACTION"),
    Column("SCOPE", cut=True),
    Column("MATCHED", right=True, extra=True),
    Column("CHANGED", right=True),
    Column("WHO", cut=True),
    Column("REASON", folded=True),
)


def audit(
    common: Common,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 50,
    check: Annotated[
        bool, typer.Option("--check", help="Check the whole log instead of showing it.")
    ] = False,
) -> None:
    """Show the audit log, or check it.

    Oldest first: when, what, how much of it changed something, who and why. All calls of one
    operation are one line. `--check` walks the whole log instead and says whether it is as it was
    written; see [operations](operations.md#the-audit-log).
    """
    check_count("--limit", limit, _MOST)
    with common.store() as store:
        if check:
            _tell(common, check_log(store))
            return
        acts = newest_acts(store, limit)
    if common.json:
        print_json(acts)
    else:
        print_table(_COLUMNS, map(_row, acts))


def _row(act: Act) -> tuple[object, ...]:
    counts = (f"{act.matched:,}", f"{act.changed:,}")
    return moment(act.at), act.action, act.scope, *counts, act.who, act.reason


def _tell(common: Common, verdicts: Sequence[Verdict]) -> None:
    """Say what was found; a log that was changed is a failure."""
    if common.json:
        print_json(verdicts)
    for verdict in verdicts:
        if verdict.problem is not None:
            note(f"the audit log of {verdict.prefix} was changed: {verdict.problem}")
        elif not common.json:
            print_line(_good(verdict))
    if any(verdict.problem is not None for verdict in verdicts):
        raise typer.Exit(1)


def _good(verdict: Verdict) -> str:
    if verdict.entries == 0:
        return f"{verdict.prefix}: the audit log is empty"
    entries = many(verdict.entries, "entry", "entries")
    older = ""
    if verdict.trimmed:
        older = f", {many(verdict.trimmed, 'older one was', 'older ones were')} trimmed"
    return f"{verdict.prefix}: {entries} as written{older}; hash {verdict.hash}"
