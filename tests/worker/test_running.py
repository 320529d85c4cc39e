"""A task that is submitted is run, and its arguments, context, progress and result arrive."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from dtq_tasks import Context
from support.proxy import Fault, Proxy
from worker.stage import Stage, eventually

ODD_NAMES = {
    *("timeout", "queue", "priority", "band", "delay", "eta", "ttl", "retries", "task_id", "id"),
    *("key", "args", "kwargs", "self", "cls", "name", "unique", "worker", "attempt", "payload"),
}


@dataclass
class Order:
    number: int
    due: datetime


async def test_async_and_plain_handlers_run_and_their_results_arrive(stage: Stage) -> None:
    @stage.task
    async def on_loop(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    @stage.task
    def in_thread(a: str) -> list[str]:
        return [a, threading.current_thread().name]

    @stage.task(runs="loop")
    def plain_on_loop() -> str:
        return threading.current_thread().name

    async with stage.worker():
        assert await (await stage.submit(on_loop, 1, b=2)).result(10) == 3
        text, thread = await (await stage.submit(in_thread, "x")).result(10)
        assert await (await stage.submit(plain_on_loop)).result(10) == "MainThread"
    assert text == "x"
    assert thread.startswith("dtq-handler")


async def test_arguments_and_results_keep_their_types(stage: Stage) -> None:
    got: list[Any] = []

    @stage.task
    async def ship(order: Order, tags: set[str], nothing: None, yes: bool) -> Order:
        got.extend([order, tags, nothing, yes])
        return order

    order = Order(7, datetime(2026, 3, 1, tzinfo=UTC))
    async with stage.worker():
        handle = await stage.submit(ship, order, {"a", "b"}, None, True)
        assert await handle.result(10) == order
    assert got == [order, {"a", "b"}, None, True]


async def test_argument_names_that_dtq_uses_itself_reach_the_handler_untouched(
    stage: Stage,
) -> None:
    given = {name: f"value of {name}" for name in ODD_NAMES} | {"none": None, "true": True}

    @stage.task(name="odd")
    async def handler(ctx: Context, **everything: Any) -> dict[str, Any]:
        return everything

    async with stage.worker():
        assert await (await stage.submit(handler, **given)).result(10) == given
        by_name = await stage.submit_by_name("odd", (), given)
        assert await by_name.result(10) == given


@pytest.mark.parametrize("name", ["STREAMS", "0", "123", "..", "-", "a.b-c_d", "x" * 100])
async def test_any_allowed_name_of_task_and_queue_works(stage: Stage, name: str) -> None:
    @stage.task(name=name, queue=name)
    async def handler() -> str:
        return "ran"

    async with stage.worker():
        assert await (await stage.submit(handler)).result(10) == "ran"


async def test_the_context_says_which_attempt_of_which_task_this_is(stage: Stage) -> None:
    seen: list[Context] = []

    @stage.task(queue="mail", retry=[0.02], max_attempts=2, timeout=60)
    def handler(first: int, ctx: Context) -> None:
        seen.append(ctx)
        if ctx.attempt == 1:
            raise ValueError("once")

    async with stage.worker() as worker:
        handle = await stage.submit(handler, 1)
        await handle.result(10)
        info = await handle.info()
    assert [ctx.attempt for ctx in seen] == [1, 2]
    assert {ctx.id for ctx in seen} == {handle.id}
    assert {(ctx.queue, ctx.name, ctx.max_attempts) for ctx in seen} == {("mail", "handler", 2)}
    assert seen[1].deadline is not None
    left = seen[1].deadline - datetime.now(UTC)
    assert 0 < left.total_seconds() <= 60
    assert info.worker == worker.id
    assert not seen[1].cancelled


async def test_progress_is_seen_while_the_handler_runs_and_the_newest_counts(stage: Stage) -> None:
    go_on = asyncio.Event()

    @stage.task
    async def handler(ctx: Context) -> None:
        ctx.progress(0.1)
        ctx.progress(0.5, "half")
        await go_on.wait()

    async with stage.worker():
        handle = await stage.submit(handler)

        async def shown() -> bool:
            return (await handle.info()).progress == {"value": 0.5, "note": "half"}

        await eventually("the progress", shown)
        go_on.set()
        await handle.result(10)


async def test_progress_is_not_lost_with_a_renewal_that_fails(stage: Stage) -> None:
    go_on = asyncio.Event()

    @stage.task
    async def handler(ctx: Context) -> None:
        await go_on.wait()
        go_on.clear()
        ctx.progress("said once")
        await go_on.wait()

    with Proxy(stage.url) as proxy:
        async with stage.worker(redis_url=proxy.url):
            handle = await stage.submit(handler)
            await stage.started(handle)
            proxy.arm(Fault.CUT_REQUEST, lambda command: b'"said once"' in command)
            go_on.set()
            await eventually("the fault", lambda: proxy.hits)

            async def shown() -> bool:
                return (await handle.info()).progress == "said once"

            await eventually("the progress", shown)
            go_on.set()
            await handle.result(10)


async def test_a_task_without_a_result_succeeds_with_none(stage: Stage) -> None:
    @stage.task
    def handler() -> None: ...

    async with stage.worker():
        handle = await stage.submit(handler)
        assert await handle.result(10) is None
        [attempt] = await handle.attempts()
    assert (attempt.attempt, attempt.outcome) == (1, "succeeded")


async def test_no_more_tasks_run_at_once_than_there_are_slots(stage: Stage) -> None:
    running, most = 0, 0

    @stage.task
    async def handler() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    async with stage.worker(concurrency=3):
        handles = await stage.submit_many(handler, [()] * 60)
        assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert most == 3


async def test_a_task_can_submit_another_one(stage: Stage) -> None:
    @stage.task
    async def second(n: int) -> int:
        return n + 1

    @stage.task
    async def first(n: int) -> str:
        return (await stage.submit(second, n)).id

    async with stage.worker():
        child = await (await stage.submit(first, 1)).result(10)
        assert await stage.client.result(child, 10) == 2
