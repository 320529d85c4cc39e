"""What the findings of all files say together. Pure."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from dtq_cli.demo.compare import Outcome
from dtq_cli.demo.files import Survey
from dtq_cli.demo.finding import Finding
from dtq_cli.output import escape

_SHOWN_FILES = 100
"""How many files and groups of duplicates are named at most."""


class KindTotal(msgspec.Struct, frozen=True):
    """All files of one kind."""

    kind: str
    files: int
    bytes: int
    lines: int
    words: int


class SizedFile(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    kind: str
    bytes: int


class Duplicates(msgspec.Struct, frozen=True):
    """Files of the same content; an empty one has no duplicates.

    Attributes:
        paths: of all of them, at most ``_SHOWN_FILES``.
        files: how many there are.
        bytes: of one of them.
        digest: SHA-256 of each.
    """

    paths: list[str]
    files: int
    bytes: int
    digest: str

    @property
    def to_spare(self) -> int:
        """Bytes that all but one of them take."""
        return self.bytes * (self.files - 1)


class Summary(msgspec.Struct, frozen=True):
    """All files together; each list begins with what is most."""

    files: int
    bytes: int
    kinds: list[KindTotal]
    largest: list[SizedFile]
    duplicates: list[Duplicates]


def summarize(survey: Survey, outcomes: Iterable[Outcome]) -> Summary:
    """Sum up what was found out; a file that could not be read has no part in it."""
    found = [
        (escape(os.path.relpath(file.path, survey.root)), outcome)
        for file, outcome in zip(survey.files, outcomes, strict=True)
        if not isinstance(outcome, str)
    ]
    largest = sorted(found, key=lambda item: (-item[1].size, item[0]))
    return Summary(
        len(found),
        sum(finding.size for _, finding in found),
        _kinds(finding for _, finding in found),
        [SizedFile(path, item.kind, item.size) for path, item in largest[:_SHOWN_FILES]],
        _duplicates(found),
    )


def _kinds(findings: Iterable[Finding]) -> list[KindTotal]:
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.kind].append(finding)
    totals = [
        KindTotal(
            kind,
            len(group),
            sum(finding.size for finding in group),
            sum(finding.lines for finding in group),
            sum(finding.words for finding in group),
        )
        for kind, group in groups.items()
    ]
    return sorted(totals, key=lambda total: (-total.files, total.kind))


def _duplicates(found: Iterable[tuple[str, Finding]]) -> list[Duplicates]:
    groups: dict[tuple[str, int], list[str]] = defaultdict(list)
    for path, finding in found:
        if finding.size:
            groups[finding.digest, finding.size].append(path)
    same = [
        Duplicates(sorted(paths)[:_SHOWN_FILES], len(paths), size, digest)
        for (digest, size), paths in groups.items()
        if len(paths) > 1
    ]
    return sorted(same, key=lambda item: (-item.to_spare, item.paths))[:_SHOWN_FILES]
