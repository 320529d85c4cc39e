"""A worker played by hand: it claims and ends tasks through the scripts, when a test says so."""

from __future__ import annotations

from typing import Any

from dtq_core import codec
from dtq_core.decide import Finish
from dtq_core.keyspace import bands_of
from dtq_core.outcome import ErrorInfo
from dtq_core.record import Claim
from dtq_core.scripts import Code
from dtq_core.settings import Settings
from dtq_core.store import Store

WORKER = "by-hand"


class Hand:
    """Claims from every partition of a deployment, and looks into its keys."""

    def __init__(self, settings: Settings) -> None:
        self.store = Store(settings)
        self.command = self.store.link.command

    def claim(self, count: int = 1, queue: str = "default") -> list[Claim]:
        """Claim exactly so many tasks."""
        claims: list[Claim] = []
        for calls in self.store.calls:
            left = count - len(claims)
            while left > 0:
                found = self.store.run(calls.claim(WORKER, left, bands_of([queue]))).claims
                if not found:
                    break
                claims += found
                left -= len(found)
        assert len(claims) == count
        return claims

    def succeed(self, claim: Claim, result: Any = None, ttl_ms: int = 60_000) -> None:
        self._finish(Finish.succeeded(claim, codec.encode(result, "result"), ttl_ms))

    def fail(self, claim: Claim, reason: str = "no luck") -> None:
        self._finish(Finish.failed(claim, ErrorInfo("ValueError", reason)))

    def retry(self, claim: Claim, delay_ms: int = 60_000) -> None:
        self._finish(Finish.retry(claim, ErrorInfo("ValueError", "not yet"), delay_ms))

    def cancelled(self, claim: Claim) -> None:
        self._finish(Finish.cancelled(claim, "stopped"))

    def run_all(self, count: int, result: Any = None) -> None:
        """Claim so many tasks, and let all succeed."""
        for claim in self.claim(count):
            self.succeed(claim, result)

    def field(self, task_id: str, name: str) -> bytes | None:
        """Return one field of a record."""
        found: bytes | None = self.command("HGET", self.store.keys_of(task_id).task(task_id), name)
        return found

    def keys(self) -> set[str]:
        """Return every key of the deployment."""
        prefix = self.store.partitions.prefix
        return {key.decode() for key in self.command("KEYS", f"{prefix}[:]*")}

    def entries(self) -> list[str]:
        """Return the task id of every stream entry."""
        streams = [key for key in sorted(self.keys()) if ":stream:" in key]
        return [
            fields[b"id"].decode()
            for stream in streams
            for _, fields in self.command("XRANGE", stream, "-", "+")
        ]

    def pending(self) -> int:
        """Return how many entries are with a consumer."""
        streams = [key for key in self.keys() if ":stream:" in key]
        groups = [group for key in streams for group in self.store.link.raw("XINFO", "GROUPS", key)]
        return sum(group[group.index(b"pending") + 1] for group in groups)

    def connections(self) -> int:
        """Return how many connections of dtq the server sees, this one not counted."""
        return sum(b" name=dtq " in line for line in self._clients()) - 1

    def subscribers(self) -> int:
        """Return how many connections listen to announcements."""
        return sum(b" sub=0 " not in line for line in self._clients())

    def close(self) -> None:
        self.store.close()

    def _clients(self) -> list[bytes]:
        return self.store.link.raw("CLIENT", "LIST").splitlines()

    def _finish(self, finish: Finish) -> None:
        answer = self.store.run(self.store.calls_of(finish.task_id).finish([finish]))[0]
        assert answer.code is Code.OK, answer
