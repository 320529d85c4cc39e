"""Guarded operations in real workers: done once, whatever becomes of the attempt."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from dtq import (
    Context,
    OperationBusyError,
    OperationInDoubtError,
    OperationResultError,
    OperationToken,
    OperationUsageError,
    idempotent_operation,
)
from worker.stage import Stage


class Bank:
    """The outside world: what was charged, and with which tokens."""

    def __init__(self) -> None:
        self.charged: list[Any] = []

    async def charge(self, order: int) -> str:
        self.charged.append(order)
        return f"receipt {order}"

    def charge_plainly(self, order: int) -> str:
        self.charged.append(order)
        return f"receipt {order}"

    async def charge_with(self, token: OperationToken, order: int) -> str:
        self.charged.append(token)
        return f"receipt {order}"


@pytest.fixture
def bank() -> Bank:
    return Bank()


async def result_of(stage: Stage, task: Any, *args: Any) -> Any:
    handle = await stage.submit(task, *args)
    async with stage.worker():
        return await handle.result(timeout=15)


def fail_first(ctx: Context) -> None:
    if ctx.attempt == 1:
        raise ValueError("not yet")


async def test_a_retry_gets_the_result_without_running_it_again(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order", retry=[0.01])
    async def order(ctx: Context, number: int) -> str:
        receipt = await idempotent_operation("charge", bank.charge, number)
        fail_first(ctx)
        return receipt

    assert await result_of(stage, order, 7) == "receipt 7"
    assert bank.charged == [7]


async def test_a_plain_handler_does_the_same_in_its_thread(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order", retry=[0.01])
    def order(ctx: Context, number: int) -> str:
        receipt = idempotent_operation("charge", bank.charge_plainly, number)
        fail_first(ctx)
        return receipt

    assert await result_of(stage, order, 7) == "receipt 7"
    assert bank.charged == [7]


async def test_an_async_operation_in_a_loop_of_the_handlers_own(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order", retry=[0.01])
    def order(ctx: Context, number: int) -> str:
        receipt = asyncio.run(idempotent_operation("charge", bank.charge, number))
        fail_first(ctx)
        return receipt

    assert await result_of(stage, order, 7) == "receipt 7"
    assert bank.charged == [7]


async def test_a_decorated_function_gets_the_same_token_in_every_attempt(
    stage: Stage, bank: Bank
) -> None:
    charge = idempotent_operation("charge", on_doubt="rerun")(bank.charge_with)

    @stage.task(name="order", retry=[0.01])
    async def order(ctx: Context, number: int) -> str:
        receipt = await charge(number)
        async with idempotent_operation("mail") as op:
            bank.charged.append(op.token)
            fail_first(ctx)
        return receipt

    assert await result_of(stage, order, 7) == "receipt 7"
    charged, mailed, mailed_again = bank.charged
    assert mailed == mailed_again != charged


async def test_a_block_is_told_what_was_done(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order", retry=[0.01])
    def order(ctx: Context) -> Any:
        with idempotent_operation("charge") as op:
            if not op.done:
                op.result = bank.charge_plainly(1)
        fail_first(ctx)
        return op.result

    assert await result_of(stage, order) == "receipt 1"
    assert bank.charged == [1]


async def test_what_failed_runs_again(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order", retry=[0.01])
    async def order(ctx: Context) -> str:
        async def charge() -> str:
            await bank.charge(ctx.attempt)
            fail_first(ctx)
            return "paid"

        return await idempotent_operation("charge", charge, on_doubt="raise")

    assert await result_of(stage, order) == "paid"
    assert bank.charged == [1, 2]


async def test_a_second_run_at_once_waits_for_the_result_of_the_first(
    stage: Stage, bank: Bank
) -> None:
    @stage.task(name="order")
    async def order() -> list[str]:
        async def charge() -> str:
            await asyncio.sleep(0)
            return await bank.charge(1)

        runs = (idempotent_operation("charge", charge) for _ in range(5))
        return list(await asyncio.gather(*runs))

    assert await result_of(stage, order) == ["receipt 1"] * 5
    assert bank.charged == [1]


async def test_threads_wait_for_each_other_too(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order")
    async def order() -> list[str]:
        def charge() -> str:
            return idempotent_operation("charge", bank.charge_plainly, 1)

        return list(await asyncio.gather(*(asyncio.to_thread(charge) for _ in range(3))))

    assert await result_of(stage, order) == ["receipt 1"] * 3
    assert bank.charged == [1]


async def test_an_operation_inside_itself_is_refused_and_does_not_wait(stage: Stage) -> None:
    @stage.task(name="order")
    async def order() -> str:
        async with idempotent_operation("charge"):
            with pytest.raises(OperationUsageError) as caught:
                await idempotent_operation("charge").__aenter__()
        return str(caught.value)

    assert "wait for itself" in await result_of(stage, order)


async def test_a_second_run_at_once_is_refused_if_it_is_not_to_wait(stage: Stage) -> None:
    @stage.task(name="order")
    async def order() -> str:
        begun, over = asyncio.Event(), asyncio.Event()

        async def charge() -> None:
            begun.set()
            await over.wait()

        first = asyncio.create_task(idempotent_operation("charge", charge))
        await begun.wait()
        with pytest.raises(OperationBusyError):
            await idempotent_operation("charge", charge, on_doubt="rerun", on_busy="raise")
        over.set()
        await first
        return "busy"

    assert await result_of(stage, order) == "busy"


async def test_a_run_that_is_cancelled_leaves_a_doubt(stage: Stage, bank: Bank) -> None:
    @stage.task(name="order")
    async def order() -> list[str]:
        async def hang() -> None:
            bank.charged.append("begun")
            await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await idempotent_operation("charge", hang)
        with pytest.raises(OperationInDoubtError) as doubt:
            await idempotent_operation("charge", hang, on_doubt="raise")
        async with idempotent_operation("charge") as op:
            op.result = "found"
        assert op.in_doubt
        assert doubt.value.token == op.token
        return [await idempotent_operation("charge", bank.charge, 1, on_doubt="raise")]

    assert await result_of(stage, order) == ["found"]
    assert bank.charged == ["begun"]


async def test_a_result_that_cannot_be_kept_is_not_run_for_again(stage: Stage, bank: Bank) -> None:
    def charge() -> object:
        bank.charged.append(1)
        return object()

    @stage.task(name="order", retry=[0.01, 0.01], max_attempts=3)
    def order(ctx: Context) -> int:
        with pytest.raises(OperationResultError):
            idempotent_operation("charge", charge)
        fail_first(ctx)
        return ctx.attempt

    assert await result_of(stage, order) == 2
    assert bank.charged == [1]


async def test_a_plain_function_on_the_loop_is_refused_with_the_remedy(
    stage: Stage, bank: Bank
) -> None:
    @stage.task(name="order")
    async def order() -> str:
        with pytest.raises(OperationUsageError) as caught:
            idempotent_operation("charge", bank.charge_plainly, 1)
        return str(caught.value)

    assert "asyncio.to_thread" in await result_of(stage, order)
    assert bank.charged == []


async def test_an_attempt_that_timed_out_in_its_thread_changes_nothing_any_more(
    stage: Stage, bank: Bank
) -> None:
    errors: list[str] = []
    over, told = threading.Event(), threading.Event()

    @stage.task(name="order", retry=[0.01], timeout=0.2)
    def order(ctx: Context) -> int:
        def charge() -> int:
            if ctx.attempt == 1:
                over.wait(15)
            bank.charged.append(ctx.attempt)
            return ctx.attempt

        try:
            return idempotent_operation("charge", charge)
        except Exception as error:
            errors.append(type(error).__name__)
            raise
        finally:
            over.set()
            if ctx.attempt == 1:
                told.set()

    assert await result_of(stage, order) == 2
    await asyncio.to_thread(told.wait, 15)
    assert sorted(bank.charged) == [1, 2]
    assert errors == ["OperationLostError"]


async def test_a_stopping_worker_keeps_no_handler_waiting_and_leaves_a_doubt(
    stage: Stage, bank: Bank
) -> None:
    begun = asyncio.Event()
    doubts: list[bool] = []

    @stage.task(name="order")
    async def order() -> None:
        async with idempotent_operation("charge") as op:
            doubts.append(op.in_doubt)
            begun.set()
            if not op.in_doubt:
                await asyncio.Event().wait()

    handle = await stage.submit(order)
    async with stage.worker(shutdown_grace=0):
        await begun.wait()
    async with stage.worker():
        await handle.result(timeout=15)
    assert doubts == [False, True]


def test_outside_a_handler_it_says_so(bank: Bank) -> None:
    with pytest.raises(OperationUsageError, match="no handler runs here"):
        idempotent_operation("charge", bank.charge_plainly, 1)
