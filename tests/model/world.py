"""Who acts on one partition, and every step that each may take next.

A step is one script call, or what befalls a process: it dies, falls silent, loses a reply. Workers
remember what they hold and what they said last; a client remembers what it submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dtq_core.audit import operation
from dtq_core.calls import Call, Calls, Submitted, Suspects, Taken
from dtq_core.decide import Finish, Release
from dtq_core.keyspace import GROUP, OVERDUE, SUSPECTS
from dtq_core.outcome import ErrorInfo
from dtq_core.record import Claim, Submission
from dtq_core.scripts import Code, Script
from dtq_core.states import TERMINAL
from model.snapshot import BAND, EMPTY, KEYS, QUEUE, VISIBILITY_MS, View
from support.clock import BEGIN_MS, Clock

NOBODY = frozenset({OVERDUE, SUSPECTS})
"""Consumers that are no process."""
TICK_MS = 1000
RESULT_TTL_MS = 3_600_000
IDEMPOTENCY_KEY = "k"
_BANDS = [(QUEUE, BAND)]
_STREAM = KEYS.stream(QUEUE, BAND)
_ERROR = ErrorInfo("ValueError", "no")


@dataclass(frozen=True)
class Scenario:
    """What is submitted, and how much may go wrong on the way.

    Attributes:
        tasks: how many.
        workers: how many.
        max_attempts: of each task.
        dead_letter: whether failures go to the dead letters.
        delay: ticks before the first start.
        ttl: ticks after which a task that waits expires; None for never.
        same_key: whether all share one idempotency key.
        isolation: whether tasks that crashed before are left to a process of their own.
        faults: how many deaths, silences, lost replies and stray entries.
        releases: how often a task is given back.
        cancels: how many cancels.
        requeues: how often an operator requeues what failed.
        purges: how often an operator purges the queue.
        slots: how many tasks a worker asks for at a time.
    """

    tasks: int = 1
    workers: int = 2
    max_attempts: int = 2
    dead_letter: bool = True
    delay: int = 0
    ttl: int | None = None
    same_key: bool = True
    isolation: bool = False
    faults: int = 2
    releases: int = 1
    cancels: int = 1
    requeues: int = 0
    purges: int = 0
    slots: int = 1

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(f"t{number}" for number in range(self.tasks))


class Worker(NamedTuple):
    """What a worker process remembers.

    Attributes:
        hand: the leases that it believes to hold.
        said: the last outcome that it sent, which it may send again.
        dead: whether it was killed, and what it held is not yet freed.
    """

    hand: tuple[Claim, ...] = ()
    said: Finish | None = None
    dead: bool = False


class Memory(NamedTuple):
    """What all processes remember, and what is counted outside of Redis."""

    workers: tuple[Worker, ...]
    accepted: tuple[str, ...] = ()
    executions: tuple[tuple[str, int], ...] = ()
    strays: tuple[str, ...] = ()
    faults: int = 0
    cancels: int = 0
    requeues: int = 0
    purges: int = 0
    now_ms: int = BEGIN_MS


class State(NamedTuple):
    """The keys, as saved and as seen, and what processes remember."""

    saved: bytes
    view: View
    memory: Memory


Remember = Callable[[Any], Memory]


class Step(NamedTuple):
    """One thing that may happen.

    Attributes:
        text: as it is told in a trace.
        act: the script call or the command; None where Redis does not notice.
        remember: from the answer to what processes remember afterwards.
        lease: the task and lease for which a worker speaks.
    """

    text: str
    act: Call[Any] | tuple[Any, ...] | None
    remember: Remember
    lease: tuple[str, int] | None = None

    @property
    def script(self) -> str:
        return self.act.script.name if isinstance(self.act, Call) else ""


def beginning(scenario: Scenario) -> State:
    view = View({}, {}, {}, {}, {}, {}, [], {}, False, {}, 0)
    return State(EMPTY, view, Memory((Worker(),) * scenario.workers))


class World:
    """Tells what may happen next."""

    def __init__(self, scenario: Scenario, broken: Mapping[str, Script] | None = None) -> None:
        """Take the scenario, and scripts that run in the place of those of the same name."""
        self.scenario = scenario
        self._broken = broken or {}
        self._calls = Calls(KEYS.prefix, 100)
        self._clocked: dict[tuple[str, int], Script] = {}

    def script(self, step: Step, now_ms: int) -> Script:
        """What runs in a step, under the clock of the model."""
        assert isinstance(step.act, Call)
        at = (step.script, now_ms)
        if at not in self._clocked:
            clock = Clock()
            clock.now_ms = now_ms
            self._clocked[at] = clock.under(self._broken.get(step.script, step.act.script))
        return self._clocked[at]

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that may happen next; what is left out would change nothing."""
        yield from self._client(state)
        for number, worker in enumerate(state.memory.workers):
            if worker.dead:
                yield self._abandon(state, number)
            else:
                yield from self._worker(state, number)
        yield from self._scheduler(state)
        yield from self._operator(state)
        if state.memory.faults < self.scenario.faults:
            yield from self._faults(state)

    # clients

    def _client(self, state: State) -> Iterator[Step]:
        memory = state.memory
        for number, task_id in enumerate(self.scenario.ids):
            if number <= len(memory.accepted):
                yield self._submit(memory, number)
            if number < len(memory.accepted) and memory.cancels < self.scenario.cancels:
                yield self._cancel(memory, task_id)

    def _submit(self, memory: Memory, number: int) -> Step:
        first = number == len(memory.accepted)

        def remember(answers: list[Submitted]) -> Memory:
            accepted = (*memory.accepted, answers[0].task_id) if first else memory.accepted
            return memory._replace(accepted=accepted)

        call = self._calls.submit([self._submission(number)])
        task_id = self.scenario.ids[number]
        return Step(f"client submits {task_id}" + " again" * (not first), call, remember)

    def _submission(self, number: int) -> Submission:
        asked = self.scenario
        return Submission(
            task_id=asked.ids[number],
            queue=QUEUE,
            band=BAND,
            spec=b"{}",
            payload=b"[]",
            max_attempts=asked.max_attempts,
            delay_ms=asked.delay * TICK_MS,
            ttl_ms=-1 if asked.ttl is None else asked.ttl * TICK_MS,
            idempotency_key=IDEMPOTENCY_KEY if asked.same_key or number == 0 else "",
            fingerprint="f",
            idempotency_ttl_ms=RESULT_TTL_MS,
            retention_ms="",
            dead_letter="" if asked.dead_letter else "0",
        )

    def _cancel(self, memory: Memory, task_id: str) -> Step:
        after = memory._replace(cancels=memory.cancels + 1)
        call = self._calls.cancel([task_id], "because")
        return Step(f"client cancels {task_id}", call, lambda _: after)

    # operators

    def _operator(self, state: State) -> Iterator[Step]:
        memory, asked = state.memory, self.scenario
        act = operation("model", "os:model", "", "")
        for task_id in memory.accepted:
            failed = state.view.records[task_id].status in ("DEAD_LETTERED", "FAILED")
            if failed and memory.requeues < asked.requeues:
                after = memory._replace(requeues=memory.requeues + 1)
                call = self._calls.requeue(act, [("", task_id)])
                yield Step(f"operator requeues {task_id}", call, lambda _, m=after: m)
        if memory.accepted and memory.purges < asked.purges:
            after = memory._replace(purges=memory.purges + 1)
            purge = self._calls.purge(act, QUEUE, "", list(memory.accepted))
            yield Step("operator purges the queue", purge, lambda _, m=after: m)

    # workers

    def _worker(self, state: State, number: int) -> Iterator[Step]:
        if state.view.entries:
            yield self._taking(state, number, "claims", self._claim(number))
            for text, call in self._reclaims(number):
                yield self._taking(state, number, text, call)
            if self._has_unknown(state, number):
                known = [claim.entry for claim in state.memory.workers[number].hand]
                adopt = self._calls.adopt(name_of(number), known, _BANDS)
                yield self._taking(state, number, "adopts", adopt)
        worker = state.memory.workers[number]
        for claim in worker.hand:
            yield from self._holding(state, number, claim)
        if worker.said is not None:
            yield self._finish(state, number, worker.said, again=True)

    def _claim(self, number: int) -> Call[Taken]:
        return self._calls.claim(name_of(number), self.scenario.slots, _BANDS)

    def _reclaims(self, number: int) -> Iterator[tuple[str, Call[Taken]]]:
        """With isolation, any worker may at any time be the process that takes only suspects."""
        modes = [Suspects.LEAVE, Suspects.ONLY] if self.scenario.isolation else [Suspects.TAKE]
        for mode in modes:
            text = "reclaims" if mode is Suspects.TAKE else f"reclaims ({mode} suspects)"
            at = (name_of(number), self.scenario.slots, VISIBILITY_MS, _BANDS, [b"0-0"])
            yield text, self._calls.reclaim(*at, mode)

    @staticmethod
    def _has_unknown(state: State, number: int) -> bool:
        known = {claim.entry_id for claim in state.memory.workers[number].hand}
        return any(
            consumer == name_of(number) and entry not in known
            for entry, consumer in state.view.pending.items()
        )

    def _taking(self, state: State, number: int, text: str, call: Call[Taken]) -> Step:
        """Take work; each task that arrives is started at once."""

        def remember(taken: Taken) -> Memory:
            started = dict(state.memory.executions)
            for claim in taken.claims:
                started[claim.task_id] = started.get(claim.task_id, 0) + 1
            hand = (*state.memory.workers[number].hand, *taken.claims)
            memory = state.memory._replace(executions=tuple(sorted(started.items())))
            return _with(memory, number, hand=hand)

        return Step(f"{name_of(number)} {text}", call, remember)

    def _holding(self, state: State, number: int, claim: Claim) -> Iterator[Step]:
        yield self._finish(state, number, Finish.succeeded(claim, b"1", RESULT_TTL_MS))
        yield self._finish(state, number, Finish.failed(claim, _ERROR))
        if claim.attempt < claim.max_attempts:
            yield self._finish(state, number, Finish.retry(claim, _ERROR, TICK_MS))
        if state.view.records[claim.task_id].fields.get("cancel_requested"):
            yield self._finish(state, number, Finish.cancelled(claim, "because"))
        if state.view.records[claim.task_id].number("releases") < self.scenario.releases:
            yield self._release(state, number, claim, Release.now(claim, "stops"))
            yield self._release(state, number, claim, Release.later(claim, "unknown", TICK_MS))
        yield self._renew(state, number, claim)

    def _finish(self, state: State, number: int, finish: Finish, *, again: bool = False) -> Step:
        """Send an outcome; whether or not its answer arrives, it may be sent once more."""
        after = _without(state.memory, number, finish.task_id, finish.lease)
        after = _with(after, number, said=None if again else finish)
        text = f"{name_of(number)} finishes {finish.task_id} under lease {finish.lease}"
        text += f": {finish.outcome}" + " again" * again
        lease = (finish.task_id, finish.lease)
        return Step(text, self._calls.finish([finish]), lambda _: after, lease)

    def _release(self, state: State, number: int, claim: Claim, release: Release) -> Step:
        after = _without(state.memory, number, claim.task_id, claim.lease)
        text = f"{name_of(number)} gives {claim.task_id} back" + " for later" * bool(
            release.delay_ms
        )
        lease = (claim.task_id, claim.lease)
        return Step(text, self._calls.release([release]), lambda _: after, lease)

    def _renew(self, state: State, number: int, claim: Claim) -> Step:
        def remember(codes: list[Code]) -> Memory:
            if codes[0] in (Code.OK, Code.CANCEL):
                return state.memory
            return _without(state.memory, number, claim.task_id, claim.lease)

        text = f"{name_of(number)} renews lease {claim.lease} of {claim.task_id}"
        call = self._calls.renew(name_of(number), [(claim.task_id, claim.lease, b"")])
        return Step(text, call, remember, (claim.task_id, claim.lease))

    # the supervisor, or the sweeper

    def _abandon(self, state: State, number: int) -> Step:
        """Free what a worker held; one that was dead is a new one from here on."""
        after = state.memory
        if after.workers[number].dead:
            after = _with(after, number, dead=False)
        else:
            after = after._replace(faults=after.faults + 1)
        call = self._calls.abandon(name_of(number), _BANDS)
        return Step(f"{name_of(number)} is abandoned", call, lambda _: after)

    # the scheduler, and time

    def _scheduler(self, state: State) -> Iterator[Step]:
        view, memory = state.view, state.memory
        if view.retries:
            yield Step("scheduler promotes retries", self._calls.promote("retry"), lambda _: memory)
        if view.delays:
            yield Step("scheduler promotes delays", self._calls.promote("delay"), lambda _: memory)
        if view.expiry:
            yield Step("scheduler expires", self._calls.expire(), lambda _: memory)
        if view.retries or view.delays or _ttl_runs(view):
            after = memory._replace(now_ms=memory.now_ms + TICK_MS)
            yield Step("a tick passes", None, lambda _: after)

    # what goes wrong

    def _faults(self, state: State) -> Iterator[Step]:
        memory = state.memory._replace(faults=state.memory.faults + 1)
        for number, worker in enumerate(memory.workers):
            if worker.dead:
                continue
            yield from self._lost_replies(state.view, memory, number)
            if name_of(number) in state.view.pending.values():
                yield self._silence(state, memory, number)
                yield self._abandon(state, number)
                yield self._death(memory, number)
        for task_id, record in state.view.records.items():
            if record.status and not memory.strays:
                yield self._stray(memory, task_id, record.number("attempt"))

    def _lost_replies(self, view: View, memory: Memory, number: int) -> Iterator[Step]:
        """An answer that gave nothing is no loss."""
        calls: list[tuple[str, Call[Taken]]] = []
        if any(not entry.delivered for entry in view.entries.values()):
            calls.append(("claims", self._claim(number)))
        if any(entry.old or entry.consumer in NOBODY for entry in view.entries.values()):
            calls.extend(self._reclaims(number))
        for text, call in calls:
            said = f"{name_of(number)} {text}, the reply is lost"
            yield Step(said, call, lambda _: memory)

    def _death(self, memory: Memory, number: int) -> Step:
        after = _with(memory, number, hand=(), said=None, dead=True)
        return Step(f"{name_of(number)} dies", None, lambda _: after)

    def _silence(self, state: State, memory: Memory, number: int) -> Step:
        name = name_of(number)
        ids = [entry for entry, consumer in state.view.pending.items() if consumer == name]
        command = ("XCLAIM", _STREAM, GROUP, name, 0, *ids, "IDLE", 2 * VISIBILITY_MS, "JUSTID")
        return Step(f"{name} falls silent", command, lambda _: memory)

    def _stray(self, memory: Memory, task_id: str, attempt: int) -> Step:
        def remember(entry: bytes) -> Memory:
            return memory._replace(strays=(*memory.strays, entry.decode()))

        command = ("XADD", _STREAM, "*", "id", task_id, "attempt", attempt)
        return Step(f"a second entry of {task_id} appears", command, remember)


def _ttl_runs(view: View) -> bool:
    records = view.records.values()
    return any("expires_ms" in r.fields and r.status not in TERMINAL for r in records)


def name_of(number: int) -> str:
    return f"w{number + 1}"


def _with(memory: Memory, number: int, **changed: Any) -> Memory:
    workers = list(memory.workers)
    workers[number] = workers[number]._replace(**changed)
    return memory._replace(workers=tuple(workers))


def _without(memory: Memory, number: int, task_id: str, lease: int) -> Memory:
    hand = memory.workers[number].hand
    left = tuple(claim for claim in hand if (claim.task_id, claim.lease) != (task_id, lease))
    return _with(memory, number, hand=left)
