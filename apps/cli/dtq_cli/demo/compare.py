"""The workers' findings against those of the plain pass."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from dtq_cli.demo.files import File, stamp_of
from dtq_cli.demo.finding import Finding
from dtq_cli.output import escape

Outcome = Finding | str
"""What was found out about a file, or why nothing was."""


@dataclass(slots=True)
class Comparison:
    """What came of it.

    Attributes:
        agreed: of how many files both sides say the same.
        unreadable: paths of those that neither side could read.
        changed: paths of those that changed meanwhile, and that nothing can be said of.
        disagreements: a line for each of the others.
    """

    agreed: int = 0
    unreadable: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)


def compare(
    files: Sequence[File], found: Sequence[Outcome], plain: Sequence[Outcome]
) -> Comparison:
    """Compare, file by file.

    Args:
        files: as they were before anyone read them.
        found: by the workers.
        plain: by the plain pass.
    """
    result = Comparison()
    for file, ours, theirs in zip(files, found, plain, strict=True):
        if isinstance(ours, str) and isinstance(theirs, str):
            result.unreadable.append(file.path)
        elif _content(ours) == _content(theirs):
            result.agreed += 1
        elif _changed(file, ours, theirs):
            result.changed.append(file.path)
        else:
            result.disagreements.append(
                f"{escape(file.path)}: the workers say {_content(ours)}, "
                f"the plain pass says {_content(theirs)}"
            )
    return result


def _content(outcome: Outcome) -> object:
    return outcome if isinstance(outcome, str) else outcome.content


def _changed(file: File, *outcomes: Outcome) -> bool:
    """Whether the file was another one to one of those who looked, or is another one now."""
    stamps = {outcome.stamp for outcome in outcomes if not isinstance(outcome, str)}
    try:
        stamps.add(stamp_of(os.lstat(file.path)))
    except OSError:
        return True
    return stamps != {file.stamp}
