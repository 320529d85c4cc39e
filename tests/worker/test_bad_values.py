"""Results that cannot be kept and arguments that do not fit: a clear failure, never a loss."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from worker.stage import Stage


class NoJson:
    pass


class RaisesWhenEncoded:
    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("not today")


class ExitsWhenEncoded:
    def model_dump(self, **_: Any) -> Any:
        raise SystemExit(3)


def too_deep() -> Any:
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    return value


async def a_coroutine() -> None: ...


RETURNED: dict[str, Callable[[], Any]] = {
    "object": NoJson,
    "file": lambda: sys.stderr,
    "raises when encoded": RaisesWhenEncoded,
    "exits when encoded": ExitsWhenEncoded,
    "NaN": lambda: [1, {"a": math.nan}],
    "infinity": lambda: math.inf,
    "surrogate": lambda: "\ud800",
    "too deep": too_deep,
    "too large": lambda: "x" * 1_100_000,
    "coroutine": a_coroutine,
}


@pytest.mark.parametrize("runs", ["loop", "thread"])
async def test_a_result_that_cannot_be_kept_is_a_failure_for_good_with_a_clear_reason(
    stage: Stage, runs: Any
) -> None:
    executed: list[str] = []

    @stage.task(runs=runs, retry=[0.01], max_attempts=3)
    def handler(name: str) -> Any:
        executed.append(name)
        return RETURNED[name]()

    names = [name for name in RETURNED if (name, runs) != ("coroutine", "loop")]
    async with stage.worker():
        handles = {name: await stage.submit(handler, name) for name in names}
        await stage.ended(*handles.values())
        infos = {name: await handle.info() for name, handle in handles.items()}
    for name, info in infos.items():
        assert info.status == "DEAD_LETTERED", name
        if name != "exits when encoded":
            assert executed.count(name) == 1, name
            assert "result of handler" in (info.error or ""), name


async def test_a_result_at_the_limit_is_kept_and_one_byte_more_is_refused(stage: Stage) -> None:
    @stage.task
    def handler(size: int) -> str:
        return "x" * (size - 2)  # two quotes

    async with stage.worker(max_result_bytes=1000):
        fits, too_large = await stage.submit(handler, 1000), await stage.submit(handler, 1001)
        assert len(await fits.result(10)) == 998
        assert await stage.ended(too_large) == ["DEAD_LETTERED"]
        assert "1,001 bytes" in ((await too_large.info()).error or "")


async def test_many_results_at_the_limit_are_all_stored(stage: Stage) -> None:
    @stage.task
    async def handler(n: int) -> str:
        return str(n) * 1_000_000

    async with stage.worker(concurrency=40):
        handles = await stage.submit_many(handler, [(n % 10,) for n in range(40)])
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
        assert await handles[7].result(5) == "7" * 1_000_000


@dataclass
class Explodes:
    x: int

    def __post_init__(self) -> None:
        raise SystemExit(4)


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        (("one",), {}, "'number'"),
        ((1, 2, 3), {}, "positional"),
        ((), {"number": 1, "colour": "red"}, "colour"),
        ((), {}, "number"),
        ((1,), {"explodes": {"x": 1}}, "SystemExit"),
    ],
)
async def test_arguments_that_do_not_fit_are_dead_lettered_at_once_with_the_argument_named(
    stage: Stage, args: tuple[Any, ...], kwargs: dict[str, Any], named: str
) -> None:
    ran = False

    @stage.task(name="typed")
    async def handler(number: int, explodes: Explodes | None = None) -> None:
        nonlocal ran
        ran = True

    @stage.task
    async def neighbour() -> str:
        return "unharmed"

    async with stage.worker():
        handle = await stage.submit_by_name("typed", args, kwargs)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert named in ((await handle.info()).error or "")
        assert len(await handle.attempts()) == 1
        assert await (await stage.submit(neighbour)).result(10) == "unharmed"
    assert not ran


@pytest.mark.parametrize("payload", [b"", b"{}", b"[[1]]", b"\xff", b"[[" + b"[" * 5000])
async def test_a_payload_that_is_no_call_is_dead_lettered(stage: Stage, payload: bytes) -> None:
    @stage.task
    async def handler(*numbers: int) -> None: ...

    handle = await stage.submit(handler)
    await stage.raw.hset(stage.keys.task(handle.id), "payload", payload)
    async with stage.worker():
        assert await stage.ended(handle) == ["DEAD_LETTERED"]


async def test_a_spec_that_cannot_be_read_is_dead_lettered(stage: Stage) -> None:
    @stage.task
    async def handler() -> None: ...

    handle = await stage.submit(handler)
    await stage.raw.hset(stage.keys.task(handle.id), "spec", b"\x80\x04pickle")
    async with stage.worker():
        assert await stage.ended(handle) == ["DEAD_LETTERED"]


async def test_an_outcome_that_cannot_be_stored_is_not_run_over_and_over(stage: Stage) -> None:
    runs = 0

    @stage.task(max_attempts=5)
    async def handler() -> None:
        nonlocal runs
        runs += 1
        raise ValueError("no")

    async with stage.worker(visibility_timeout=0.6):
        handle = await stage.client.submit(handler.options(delay=0.1))
        await stage.raw.set(stage.keys.attempts(handle.id), "a foreign value", ex=3600)
        stage.accepted.append(handle.id)
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        assert "list of attempts" in ((await handle.info()).error or "")
    assert runs == 1
    await stage.raw.delete(stage.keys.attempts(handle.id))


async def test_outcomes_are_held_while_one_of_our_keys_holds_something_foreign(
    stage: Stage,
) -> None:
    runs = 0

    @stage.task(max_attempts=1)
    async def handler() -> str:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.2)
        return "done"

    async with stage.worker(visibility_timeout=0.5, reaper_interval=0.1):
        handle = await stage.submit(handler)
        await stage.started(handle)
        await stage.raw.set(stage.keys.retry_schedule, "foreign")
        await asyncio.sleep(0.8)
        assert await handle.status() == "RUNNING"
        await stage.raw.delete(stage.keys.retry_schedule)
        assert await handle.result(10) == "done"
    assert runs == 1
