"""What an examination says of one thing."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """How things stand."""

    OK = "ok"
    UNKNOWN = "unknown"
    """It could not be looked at: a right is missing."""
    WARNING = "warning"
    """It works, and will hurt under load or when something breaks."""
    DANGER = "danger"
    """Tasks can be lost or refused, or stand still, now."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was examined.

    Attributes:
        check: what it is.
        verdict: how it stands.
        says: what was seen.
        why: why it matters.
        remedy: the command that mends it, or what to do; None where nothing is to be mended.
    """

    check: str
    verdict: Verdict
    says: str
    why: str
    remedy: str | None = None


def worst(*verdicts: Verdict) -> Verdict:
    """Return the worst of some verdicts; OK where there are none."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.OK)
