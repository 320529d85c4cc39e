"""Long random walks over all scripts, in batches and bands, on every server version there is.

Whatever happens, the books balance and every task ends. Each order of single steps is walked in
``tests/model``.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from dtq_core.reads import Read
from dtq_core.record import Claim
from dtq_core.scripts import Code
from dtq_core.states import TERMINAL, TRANSITIONS, Status
from scripts.table import LONG_MS, Table
from support.clock import Clock
from support.keys import check_keys
from support.ledger import check_ledger

STEPS = 250
WORKERS = ("w1", "w2", "w3")
OPTIONS: tuple[dict[str, object], ...] = (
    {},
    {"delay": 5},
    {"ttl": 20},
    {"delay": 5, "ttl": 3},
    {"dead_letter": False, "max_attempts": 1},
    {"band": "critical", "max_attempts": 2},
)


class Walk:
    """Clients, workers and a scheduler that do whatever comes into their heads.

    Leases are kept when they are lost and used again: that is what frozen workers do.
    """

    def __init__(self, table: Table, clock: Clock, seed: int) -> None:
        self.table = table
        self.ids: list[str] = []
        self.claims: list[Claim] = []
        self._clock = clock
        self._chance = random.Random(seed)
        self._steps: dict[str, Callable[[], object]] = {
            "submit": self._submit,
            "claim": self._claim,
            "reclaim": self._reclaim,
            "adopt": self._adopt,
            "finish": self._finish,
            "release": self._release,
            "cancel": lambda: table.cancel(*self._some_ids()),
            "promote": lambda: [table.promote(schedule) for schedule in ("retry", "delay")],
            "expire": table.expire,
            "abandon": lambda: table.abandon(self._worker()),
            "renew": self._renew,
            "watch": lambda: table.watch(*self._some_ids()),
            "beat": lambda: table.beat(self._worker()),
            "requeue": lambda: table.requeue(*self._some_ids()),
            "purge": self._purge,
            "an entry falls silent": self._fall_silent,
            "a second entry": self._add_entry,
        }
        self._weights = [3, 3, 2, 1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 2, 1]

    def go(self) -> str:
        """Do one thing; return its name."""
        self._clock.turn(self._chance.randrange(2000))
        (name,) = self._chance.choices(list(self._steps), self._weights)
        self._steps[name]()
        return name

    def drain(self) -> None:
        """Bring every task to its end."""
        for _ in range(20):
            self._clock.turn(60_000)
            for schedule in ("retry", "delay"):
                self.table.promote(schedule)
            for worker in WORKERS:
                self.table.abandon(worker)
            for taken in (self.table.reclaim("w9", 50), self.table.take("w9", 50)):
                for claim in taken.claims:
                    self.table.succeed(claim)
            if TERMINAL.issuperset(self.statuses().values()):
                return

    def statuses(self) -> dict[str, Status]:
        commands = [("HGET", self.table.keys.task(task_id), "status") for task_id in self.ids]
        found = self.table.store.read(Read(commands, list))
        return {i: Status(status.decode()) for i, status in zip(self.ids, found, strict=True)}

    def _worker(self) -> str:
        return self._chance.choice(WORKERS)

    def _some_ids(self) -> list[str]:
        return self._chance.sample(self.ids, min(2, len(self.ids)))

    def _submit(self) -> None:
        asked = dict(self._chance.choice(OPTIONS))
        if self._chance.random() < 0.3:
            asked["idempotency_key"] = f"k{self._chance.randrange(20)}"
        answer = self.table.submit_all(self.table.submission(**asked))[0]
        if answer.code is Code.OK:
            self.ids.append(answer.task_id)

    def _claim(self) -> None:
        self.claims += self.table.take(self._worker(), self._chance.randrange(1, 4)).claims

    def _reclaim(self) -> None:
        self.claims += self.table.reclaim(self._worker(), 2).claims

    def _fall_silent(self) -> None:
        for claim in self._held():
            stream = self.table.stream(claim.band)
            entry = (self._worker(), 0, claim.entry_id, "IDLE", LONG_MS)
            self.table.redis("XCLAIM", stream, "workers", *entry)

    def _adopt(self) -> None:
        known = [claim for claim in self.claims if self._chance.random() < 0.8]
        self.claims += self.table.adopt(self._worker(), *known).claims

    def _finish(self) -> None:
        for claim in self._held():
            ends = [self.table.succeed, self.table.fail]
            if claim.attempt < claim.max_attempts:
                ends.append(self.table.retry)
            self._chance.choice(ends)(claim)

    def _release(self) -> None:
        for claim in self._held():
            self.table.release(claim, self._chance.choice([0, 3000]))

    def _renew(self) -> None:
        for claim in self._held():
            self.table.renew(claim, self._worker(), b"1")

    def _purge(self) -> None:
        if self._chance.random() < 0.3:
            self.table.purge(*self._some_ids())

    def _held(self) -> list[Claim]:
        return [self._chance.choice(self.claims[-8:])] if self.claims else []

    def _add_entry(self) -> None:
        for task_id in self._some_ids()[:1]:
            self.table.redis("XADD", self.table.stream(), "*", "id", task_id, "attempt", 1)


LEGAL = {(move.source, move.target, move.script) for move in TRANSITIONS}


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_moves_are_legal_books_balance_and_every_task_ends(
    seed: int, timed: Table, clock: Clock
) -> None:
    walk = Walk(timed, clock, seed)
    before = walk.statuses()
    for _ in range(STEPS):
        step = walk.go()
        after = walk.statuses()
        moves = {(before.get(task_id), now, step) for task_id, now in after.items()}
        illegal = {move for move in moves if move[0] is not move[1]} - LEGAL
        assert not illegal, illegal
        before = after
    _check_books(walk, timed)
    walk.drain()
    check_ledger(timed.store, walk.ids)


def _check_books(walk: Walk, table: Table) -> None:
    """Counters, keys, and leases: none was given out twice."""
    counted, found = table.counters(), list(walk.statuses().values())
    for status in Status:
        there = found.count(status)
        ever = counted[status]
        assert ever == there or (status.terminal and ever > there), status
    assert counted["absorbed"] > 0
    leases = [(claim.task_id, claim.lease) for claim in walk.claims]
    assert len(set(leases)) == len(leases)
    assert all(claim.attempt <= claim.max_attempts for claim in walk.claims)
    check_keys(table.store)
