"""A handler cannot break its worker: whatever it raises is a failed attempt with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dtq_core.limits import MAX_ERROR_BYTES
from worker.stage import Stage


class NeedsTwoArguments(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")

    __repr__ = __str__


class ExitsWhenPrinted(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Huge(Exception):
    def __str__(self) -> str:
        return "x" * 50_000_000


def nested_group() -> BaseException:
    error: Exception = ValueError("the innermost")
    for _ in range(500):
        error = ExceptionGroup("one of 500", [error])
    return error


def cyclic_cause() -> BaseException:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def deep_recursion() -> BaseException:
    try:
        return deep_recursion()
    except RecursionError as error:
        return error


RAISED: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(2),
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "StopIteration": lambda: StopIteration(1),
    "StopAsyncIteration": StopAsyncIteration,
    "MemoryError": MemoryError,
    "TimeoutError": TimeoutError,
    "NeedsTwoArguments": lambda: NeedsTwoArguments(1, 2),
    "Unprintable": Unprintable,
    "ExitsWhenPrinted": ExitsWhenPrinted,
    "Huge": Huge,
    "surrogates and NUL": lambda: ValueError("\ud800 \x00 \x1b[31m \u202e"),
    "group nested 500 deep": nested_group,
    "cause with a cycle": cyclic_cause,
    "RecursionError": deep_recursion,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("two", [SystemExit(1), ValueError("x")]),
}


@pytest.mark.parametrize("runs", ["loop", "thread"])
async def test_i3_whatever_a_handler_raises_is_a_failed_attempt_and_its_neighbours_go_on(
    stage: Stage, runs: Any
) -> None:
    go_on = asyncio.Event()

    @stage.task
    async def neighbour() -> str:
        await go_on.wait()
        return "unharmed"

    @stage.task(runs=runs, retry=[0.01], max_attempts=2)
    def handler(name: str) -> None:
        raise RAISED[name]()

    async with stage.worker() as worker:
        innocent = await stage.submit(neighbour)
        handles = {name: await stage.submit(handler, name) for name in RAISED}
        statuses = await stage.ended(*handles.values(), limit_s=30)
        go_on.set()
        assert await innocent.result(10) == "unharmed"
        assert worker.executed >= 2 * len(RAISED)
        attempts = {name: await handle.attempts() for name, handle in handles.items()}
        reasons = {name: (await handle.info()).error for name, handle in handles.items()}
    assert set(statuses) == {"DEAD_LETTERED"}
    for name, both in attempts.items():
        assert [attempt.outcome for attempt in both] == ["retry", "failed"], name
        for attempt in both:
            assert attempt.error is not None, name
            size = sum(len(text.encode()) for text in attempt.error.values())
            assert size <= MAX_ERROR_BYTES, name
    for name, reason in reasons.items():
        assert reason, name
        assert reason.isprintable(), name
        assert len(reason) <= 200, name


async def test_async_handlers_fail_in_the_same_way(stage: Stage) -> None:
    @stage.task(max_attempts=1)
    async def handler(name: str) -> None:
        await asyncio.sleep(0)
        raise RAISED[name]()

    async with stage.worker():
        handles = [await stage.submit(handler, name) for name in RAISED]
        assert set(await stage.ended(*handles)) == {"DEAD_LETTERED"}


async def test_a_handler_that_cancels_its_own_asyncio_task_has_failed(stage: Stage) -> None:
    runs = 0

    @stage.task(retry=[0.01], max_attempts=2)
    async def handler() -> None:
        nonlocal runs
        runs += 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert (await handle.info()).releases == 0
    assert runs == 2
