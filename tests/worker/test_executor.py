"""The executor alone: whenever an attempt is told to stop, it ends once, and its slot is free."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dtq_core.decide import Decision, Finish, Release
from dtq_core.record import Claim
from dtq_core.settings import Settings
from dtq_core.store import AsyncStore
from dtq_tasks import Registry, TaskDecorator
from dtq_tasks.operations.memory import MemoryOperations
from dtq_worker.executor import Executor
from dtq_worker.held import Held, Stop, new_held
from dtq_worker.measurer import Measurer
from dtq_worker.slots import Slots
from dtq_worker.tracer import Tracer


class Bench:
    """An executor, and what it reported."""

    def __init__(self) -> None:
        self.runs = 0
        self.registry = Registry()
        self.slots = Slots(1)
        self.reported: list[Decision] = []
        self.executor = Executor(
            self.registry,
            Settings(),
            self.slots,
            lambda _id: self,
            lambda claim: MemoryOperations().attempt(claim.task_id),
            lambda _held: None,
            Measurer(),
            Tracer(AsyncStore(Settings(redis_url="redis://nowhere"))),
        )

        @TaskDecorator(self.registry)(name="count")
        async def count() -> None:
            self.runs += 1
            await asyncio.sleep(0)

    def put(self, _held: Held, decision: Decision) -> None:
        self.reported.append(decision)

    def hold(self) -> Held:
        self.slots.take(1)
        [held] = new_held(
            [Claim("0" * 32, "q", "low", "1-1", 1, 1, 1, b'{"name":"count"}', b"[[],{}]", *[0] * 6)]
        )
        return held

    async def ended(self, held: Held) -> Decision:
        assert held.work is not None
        await asyncio.wait([held.work])
        await asyncio.sleep(0)
        assert self.slots.free == 1
        [decision] = self.reported
        return decision


@pytest.fixture
def bench() -> Any:
    made = Bench()
    yield made
    made.executor.close()


@pytest.mark.parametrize("stop", [Stop.CANCEL, Stop.SHUTDOWN, Stop.LOST])
@pytest.mark.parametrize("when", ["before the start", "before the first step"])
async def test_an_attempt_told_to_stop_before_it_begins_never_runs(
    bench: Bench, stop: Stop, when: str
) -> None:
    held = bench.hold()
    if when == "before the start":
        held.interrupt(stop)
    bench.executor.start(held)
    held.interrupt(stop)
    decision = await bench.ended(held)
    assert bench.runs == 0
    if stop is Stop.CANCEL:
        assert isinstance(decision, Finish)
        assert decision.outcome == "cancelled"
    else:
        assert isinstance(decision, Release)


async def test_an_attempt_told_to_stop_after_its_end_has_ended_once(bench: Bench) -> None:
    held = bench.hold()
    bench.executor.start(held)
    decision = await bench.ended(held)
    held.interrupt(Stop.CANCEL)
    await asyncio.sleep(0)
    assert isinstance(decision, Finish)
    assert decision.outcome == "succeeded"
    assert len(bench.reported) == bench.runs == 1


@pytest.mark.parametrize("steps", range(6))
async def test_an_attempt_told_to_stop_at_any_step_ends_once(bench: Bench, steps: int) -> None:
    held = bench.hold()
    bench.executor.start(held)
    for _ in range(steps):
        await asyncio.sleep(0)
    held.interrupt(Stop.CANCEL)
    decision = await bench.ended(held)
    assert isinstance(decision, Finish)
    assert decision.outcome in {"succeeded", "cancelled"}
