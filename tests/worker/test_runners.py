"""Threads that handlers run in, on a machine that has none left."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dtq_worker import runners
from dtq_worker.runners import ThreadRunner
from worker.stage import eventually


@pytest.fixture(autouse=True)
def _try_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "_TRY_AGAIN_S", 0.01)


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a thread could not be started; there is one left to start."""
    refused: list[int] = []
    start, started = threading.Thread.start, threading.Event()

    def start_or_refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("dtq-handler") and started.is_set():
            refused.append(1)
            raise RuntimeError("can't start new thread")
        started.set()
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_refuse)
    return refused


async def test_a_function_waits_for_a_thread_and_runs_once(refusals: list[int]) -> None:
    runner, gate, runs = ThreadRunner(4), threading.Event(), []
    blocker = asyncio.create_task(runner.run(gate.wait))
    waiting = [asyncio.create_task(runner.run(lambda n=n: runs.append(n))) for n in range(3)]
    await eventually("many refusals", lambda: len(refusals) >= 6)
    assert runs == []
    gate.set()
    await asyncio.gather(blocker, *waiting)
    assert sorted(runs) == [0, 1, 2]
    runner.close()


async def test_what_has_not_begun_when_the_runner_is_closed_never_does(
    refusals: list[int],
) -> None:
    runner, gate, runs = ThreadRunner(4), threading.Event(), []
    blocker = asyncio.create_task(runner.run(gate.wait))
    waiting = asyncio.create_task(runner.run(lambda: runs.append(1)))
    await eventually("a refusal", lambda: refusals)
    runner.close()
    with pytest.raises(RuntimeError, match="shutdown"):
        await waiting
    gate.set()
    await blocker
    assert runs == []
