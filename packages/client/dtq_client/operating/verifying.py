"""Whether a deployment agrees with itself, and mending what does not.

Each thing is looked at by a script, at one moment together with all that belongs to it; so a
deployment may be as busy as it likes. Only counters need more than a moment: those of a queue are
compared where none of them changed from the beginning of the walk to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from dtq_client.operating.walking import Walk
from dtq_client.queries.audit import check_log
from dtq_core.audit import operation
from dtq_core.errors import CorruptDataError
from dtq_core.store import Store
from dtq_core.verify import MEANINGS, Finding, Kind, Mend

MOST_EXAMPLES = 20


class Report(msgspec.Struct, frozen=True):
    """Everything of one kind.

    Attributes:
        kind: which.
        says: what disagrees.
        remedy: what a repair does, or what is to be done.
        found: how many there were.
        mended: how many of them were mended.
        examples: some of them.
    """

    kind: Kind
    says: str
    remedy: str
    found: int
    mended: int
    examples: list[str]


class Outcome(msgspec.Struct, frozen=True):
    """What a walk found.

    Attributes:
        tasks: how many sound records it looked at.
        keys: how many keys.
        left: how much disagrees still.
        kinds: each kind of which something was found.
    """

    tasks: int
    keys: int
    left: int
    kinds: list[Report]


class _Findings:
    """Counts what is found, with a few examples of each kind."""

    def __init__(self) -> None:
        self._found: Counter[Kind] = Counter()
        self._mended: Counter[Kind] = Counter()
        self._examples: dict[Kind, list[str]] = {}

    def add(self, finding: Finding) -> None:
        self._found[finding.kind] += 1
        self._mended[finding.kind] += finding.mended
        examples = self._examples.setdefault(finding.kind, [])
        if len(examples) < MOST_EXAMPLES:
            examples.append(finding.subject)

    def outcome(self, tasks: int, keys: int) -> Outcome:
        left = self._found.total() - self._mended.total()
        return Outcome(
            tasks, keys, left, [self._report(kind) for kind in Kind if self._found[kind]]
        )

    def _report(self, kind: Kind) -> Report:
        meaning, examples = MEANINGS[kind], self._examples[kind]
        found, mended = self._found[kind], self._mended[kind]
        return Report(kind, meaning.says, meaning.remedy, found, mended, examples)


def verify(
    store: Store,
    who: str,
    reason: str = "",
    *,
    repair: bool = False,
    progress: Callable[[int], None] = lambda keys: None,
) -> Outcome:
    """Walk over a deployment.

    Args:
        store: of the deployment.
        who: who does it, for the audit log.
        reason: why, for the audit log.
        repair: whether what can be mended safely is mended.
        progress: told how many keys of the partition at hand were seen.

    Raises:
        InvalidOptionError: for a reason that is refused; nothing was done.
        RedisError: if the server cannot say. What was mended until then stays so.
    """
    findings = _Findings()
    act = operation("verify.repair", who, reason, "all that can be mended safely")
    mend = Mend.ALL if repair else Mend.NOTHING
    tasks = seen = 0
    for keys, calls in zip(store.partitions.all, store.calls, strict=True):
        walk = Walk(store, keys, calls, act, mend, progress)
        try:
            for finding in walk.findings():
                findings.add(finding)
        except CorruptDataError as error:  # a key that all share: no script goes on here
            findings.add(Finding(Kind.FOREIGN, str(error), mended=False))
        tasks += walk.tasks_seen
        seen += walk.keys_seen
    for verdict in check_log(store):
        if verdict.problem is not None:
            problem = f"{verdict.prefix}: {verdict.problem}"
            findings.add(Finding(Kind.AUDIT_CHANGED, problem, mended=False))
    return findings.outcome(tasks, seen)
