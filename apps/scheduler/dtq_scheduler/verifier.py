"""The verifier: quietly looks for tasks that nothing leads to any more, and brings them back.

A few hundred keys each time the scheduler comes round, so that it costs next to nothing; then a
rest until the next walk is due. All other disagreements are left to ``dtq verify``.
"""

from __future__ import annotations

import structlog

from dtq_core import reads
from dtq_core.audit import operation
from dtq_core.calls import Calls
from dtq_core.clock import mono_s
from dtq_core.failpoints import reach
from dtq_core.keyspace import Keyspace
from dtq_core.store import AsyncStore
from dtq_core.verify import Mend, Thing

_log = structlog.get_logger("dtq.verifier")

_KEYS_A_STEP = 200
_FIRST_S = 60.0
"""A scheduler that is often started again looks all the same."""
_NO_ACT = operation("verify", "scheduler", "", "")
"""Nothing of this is told to the audit log: no operator did it."""


class Verifier:
    """Looks through one partition, walk after walk."""

    def __init__(self, store: AsyncStore, keys: Keyspace, calls: Calls, interval_s: float) -> None:
        """Set up.

        Args:
            store: to call through.
            keys: of the partition.
            calls: of the partition.
            interval_s: from the end of one walk to the beginning of the next; 0: never.
        """
        self._store = store
        self._keys = keys
        self._calls = calls
        self._interval_s = interval_s
        self._due_s = mono_s() + min(interval_s, _FIRST_S)
        self._cursor = 0

    async def step(self) -> None:
        """Look at some tasks, where a walk is due or under way.

        Raises:
            RedisError: if Redis cannot do it; the step is made again.
        """
        if not self._interval_s or mono_s() < self._due_s:
            return
        page = await self._store.read(reads.scan(self._keys, self._cursor, _KEYS_A_STEP))
        things = [Thing("task", task_id) for task_id in page.names]
        reach("verify.before")
        done = await self._store.run(self._calls.verify(_NO_ACT, Mend.LOST, things))
        reach("verify.after")
        for finding in done.findings:
            if finding.mended:
                _log.warning("a task that was lost is back", id=finding.subject, was=finding.kind)
        self._cursor = page.cursor
        if self._cursor == 0:
            self._due_s = mono_s() + self._interval_s
