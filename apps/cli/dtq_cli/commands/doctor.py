"""``dtq doctor``: whether this Redis, and what works on it, are fit to be relied on."""

from __future__ import annotations

import contextlib

import typer
from rich.text import Text

from dtq_cli.options import Common
from dtq_cli.output import Column, note, print_json, print_line, print_table
from dtq_cli.words import many
from dtq_client.doctor.examining import examine
from dtq_client.doctor.finding import Finding, Verdict
from dtq_core.store import Store

_COLUMNS = (Column("CHECK"), Column("VERDICT"), Column("WHAT WAS SEEN", folded=True))
_ADVICE = (
    Column("CHECK"),
    Column("WHY IT MATTERS", folded=True),
    Column("WHAT MENDS IT", folded=True),
)
_STYLES = {
    Verdict.OK: "green",
    Verdict.UNKNOWN: "cyan",
    Verdict.WARNING: "yellow",
    Verdict.DANGER: "bold red",
}


def doctor(common: Common) -> None:
    """Examine the server, its clock and speed, the rights of its user, workers and scheduler.

    Each thing has a verdict. What is not in order comes with why it matters and what mends it.
    CONFIG need not be allowed. Exits with 1 where tasks can be lost or refused, or stand still.
    See [operations](operations.md#is-this-redis-fit).
    """
    with contextlib.closing(Store(common.settings())) as store:
        found = list(examine(store))
    if common.json:
        print_json(found)
    else:
        _show(found)
    if dangers := sum(finding.verdict is Verdict.DANGER for finding in found):
        note(many(dangers, "danger"))
        raise typer.Exit(1)


def _show(found: list[Finding]) -> None:
    print_table(_COLUMNS, [(one.check, _verdict(one), one.says) for one in found])
    advice = [one for one in found if one.verdict is not Verdict.OK]
    if advice:
        print_line("")
        print_table(_ADVICE, [(one.check, one.why, one.remedy) for one in advice])


def _verdict(finding: Finding) -> Text:
    return Text(finding.verdict, _STYLES[finding.verdict])
