"""``dtq verify``: whether a deployment agrees with itself."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common, Reason, operator
from dtq_cli.output import Column, note, print_json, print_line, print_table
from dtq_cli.words import many
from dtq_client.operating.verifying import Outcome, Report, verify

_SHOWN_EXAMPLES = 3
_COLUMNS = (
    Column("KIND"),
    Column("FOUND", right=True),
    Column("MENDED", right=True),
    Column("WHAT IT IS, AND WHAT IS DONE", folded=True),
    Column("SUCH AS", cut=True),
)


def verify_all(
    common: Common,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended safely.")
    ] = False,
    reason: Reason = "",
) -> None:
    """Verify a deployment.

    It goes in bounded steps, while the deployment works, and lists each disagreement. Exits with 1
    where something disagrees, after a repair where something is left. See
    [operations](operations.md#does-everything-agree).
    """
    with common.store() as store:
        outcome = verify(store, operator(), reason, repair=repair)
    if common.json:
        print_json(outcome)
    else:
        _show(outcome)
    if outcome.left:
        note(_left(outcome, repair))
        raise typer.Exit(1)


def _show(outcome: Outcome) -> None:
    if outcome.kinds:
        print_table(_COLUMNS, map(_row, outcome.kinds))
        print_line("")
    found = sum(report.found for report in outcome.kinds)
    result = many(found, "thing disagrees", "things disagree") if found else "everything agrees"
    print_line(f"{many(outcome.tasks, 'task')} in {many(outcome.keys, 'key')}: {result}")


def _row(report: Report) -> tuple[object, ...]:
    examples = ", ".join(report.examples[:_SHOWN_EXAMPLES])
    text = f"{report.says}; {report.remedy}"
    return report.kind, f"{report.found:,}", f"{report.mended:,}", text, examples


def _left(outcome: Outcome, repair: bool) -> str:
    if repair:
        return f"{many(outcome.left, 'thing')} cannot be mended safely"
    disagreeing = many(outcome.left, "thing disagrees", "things disagree")
    return f"{disagreeing}; --repair mends what can be mended safely"
