"""All that a run of the demo has to say; ``--json`` prints exactly this."""

from __future__ import annotations

import msgspec

from dtq_cli.demo.ledger import Ledger, Recovery
from dtq_cli.demo.summary import Summary


class KillReport(msgspec.Struct, frozen=True):
    """The worker that was killed.

    Attributes:
        pid: its process id.
        ended: how many tasks had ended by then.
        recovery: what became of those that it ran.
    """

    pid: int
    ended: int
    recovery: Recovery


class Report(msgspec.Struct, frozen=True):
    """What happened, what was found, and whether it adds up.

    Attributes:
        ok: whether nothing disagrees.
        folder: what was examined.
        seconds: from the first submission to the end of the last task.
        plain_seconds: how long the plain pass took.
        left_out: how many entries of the folder were passed over, by reason.
        capped: whether the folder holds more files than were asked for.
        summary: what was found.
        agreed: of how many files the plain pass says the same.
        unreadable: paths of files that neither could read.
        changed: paths of files that changed meanwhile.
        ledger: the accounts.
        kill: the worker that was killed.
        disagreements: whatever does not add up, a line each.
        evidence: where there are any, the folder with the journal and the log of the workers.
    """

    ok: bool
    folder: str
    seconds: float
    plain_seconds: float
    left_out: dict[str, int]
    capped: bool
    summary: Summary
    agreed: int
    unreadable: list[str]
    changed: list[str]
    ledger: Ledger
    kill: KillReport | None
    disagreements: list[str]
    evidence: str | None
