"""Making the planned faults happen, and writing down when, and to whom."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple

from chaos.plan import Kind, Planned
from chaos.site import Site
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError
from support.programs import Program
from support.proxy import Fault, is_command

Undo = Callable[[], None]


class Happened(NamedTuple):
    """A fault that happened; times are monotonic.

    Attributes:
        kind: what.
        begin_s: when it began.
        end_s: when it was undone; infinity as long as it was not.
        pids: the processes that it hit; none where it hit something else.
        machine: which machine it hit.
    """

    kind: Kind
    begin_s: float
    end_s: float
    pids: frozenset[int]
    machine: int


class Faults:
    """Makes faults, and remembers them."""

    def __init__(self, site: Site, seed: int) -> None:
        self.happened: list[Happened] = []
        self._site = site
        self._chance = random.Random(seed)
        self._makers: dict[Kind, Callable[[Planned], tuple[Iterable[int], Undo]]] = {
            Kind.KILL_PROCESS: self._kill_process,
            Kind.KILL_SUPERVISOR: self._kill_supervisor,
            Kind.KILL_MACHINE: self._kill_machine,
            Kind.KILL_SCHEDULER: self._kill_scheduler,
            Kind.FREEZE_PROCESS: self._freeze_process,
            Kind.FREEZE_MACHINE: self._freeze_machine,
            Kind.DEPLOY: self._deploy,
            Kind.RESTART_REDIS: self._restart_redis,
            Kind.CUT_MACHINE: self._cut_machine,
            Kind.CUT_CLIENTS: self._cut_clients,
            Kind.LOSE_REPLIES: self._lose_replies,
            Kind.FLUSH_SCRIPTS: self._flush_scripts,
        }

    def make(self, planned: Planned) -> Undo:
        """Make a fault, and return what undoes it."""
        begin_s = mono_s()
        pids, undo = self._makers[planned.kind](planned)
        index = len(self.happened)
        self.happened.append(
            Happened(planned.kind, begin_s, float("inf"), frozenset(pids), planned.machine)
        )

        def undo_and_note() -> None:
            undo()
            self.happened[index] = self.happened[index]._replace(end_s=mono_s())

        return undo_and_note

    def _machine(self, planned: Planned) -> Program:
        return self._site.machines[planned.machine]

    def _some_child(self, planned: Planned) -> list[int]:
        children = sorted(self._machine(planned).children())
        return [self._chance.choice(children)] if children else []

    def _everybody(self, planned: Planned) -> list[int]:
        machine = self._machine(planned)
        return [machine.pid, *machine.children()]

    def _kill_process(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        pids = self._some_child(planned)
        _signal(pids, signal.SIGKILL)
        return pids, _nothing

    def _kill_supervisor(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        """Its children are told so by the end of their line, and finish what they run."""
        supervisor, *children = self._everybody(planned)
        _signal([supervisor], signal.SIGKILL)
        return children, self._start_again(planned)

    def _kill_machine(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        pids = self._everybody(planned)
        self._machine(planned).kill_all()
        return pids, self._start_again(planned)

    def _kill_scheduler(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        self._site.scheduler.kill_all()

        def start() -> None:
            self._site.scheduler = self._site.new_scheduler()

        return [], start

    def _freeze_process(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        return _freeze(self._some_child(planned))

    def _freeze_machine(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        return _freeze(self._everybody(planned))

    def _deploy(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        pids = self._everybody(planned)
        _signal(pids[:1], signal.SIGTERM)
        return pids, self._start_again(planned)

    def _start_again(self, planned: Planned) -> Undo:
        old = self._machine(planned)

        def start() -> None:
            if self._machine(planned) is old:  # not replaced since
                self._site.machines[planned.machine] = self._site.new_machine(planned.machine)

        return start

    def _restart_redis(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        self._site.server.kill()
        return [], self._site.server.restart

    def _cut_machine(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        proxy = self._site.proxies[planned.machine]
        proxy.go_away()
        return self._site.everybody_at(planned.machine), proxy.come_back

    def _cut_clients(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        self._site.clients_proxy.go_away()
        return [], self._site.clients_proxy.come_back

    def _lose_replies(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        """Of the next script calls of every machine and client, the replies are lost."""
        for proxy in self._site.proxies:
            proxy.arm(Fault.CUT_REPLY, is_command("EVALSHA"), nth=3, times=3)
        return [], _nothing

    def _flush_scripts(self, planned: Planned) -> tuple[Iterable[int], Undo]:
        with contextlib.suppress(RedisError):  # it is away as well
            self._site.store.link.command("SCRIPT", "FLUSH")
        return [], _nothing


def _nothing() -> None:
    """Undo what ends by itself."""


def _freeze(pids: list[int]) -> tuple[Iterable[int], Undo]:
    _signal(pids, signal.SIGSTOP)
    return pids, lambda: _signal(pids, signal.SIGCONT)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
