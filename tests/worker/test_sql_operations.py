"""Guarded operations whose record is a row in the caller's own transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from dtq import Context, OperationResultError, OperationUsageError, idempotent_operation
from dtq_tasks.operations.sql import create_tables, delete_old, operations
from support.databases import DATABASES
from worker.stage import Stage


@pytest.fixture(scope="module", params=DATABASES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with ExitStack() as stack:
        made = create_engine(stack.enter_context(DATABASES[request.param]()))
        with made.begin() as connection:
            create_tables(connection)
            connection.execute(text("CREATE TABLE paid (number INTEGER)"))
        yield made
        made.dispose()


@pytest.fixture(autouse=True)
def empty(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM paid"))


def paid(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT number FROM paid")).scalars())


def pay(number: int, session: Session) -> str:
    session.execute(text("INSERT INTO paid VALUES (:number)"), {"number": number})
    return f"receipt {number}"


async def result_of(stage: Stage, task: Any, *args: Any) -> Any:
    handle = await stage.submit(task, *args)
    async with stage.worker():
        return await handle.result(timeout=20)


def fail_first(ctx: Context) -> None:
    if ctx.attempt == 1:
        raise ValueError("not yet")


@pytest.mark.parametrize("form", ["call", "decorator", "block", "scoped"])
async def test_what_was_committed_is_not_done_again(
    stage: Stage, engine: Engine, form: str
) -> None:
    guarded = idempotent_operation("pay")(pay)

    def in_form(session: Session) -> str:
        if form == "decorator":
            return guarded(7, session=session)
        if form == "block":
            with idempotent_operation("pay", session=session) as op:
                if not op.done:
                    op.result = pay(7, session)
            return str(op.result)
        if form == "scoped":
            session = scoped_session(sessionmaker(engine))  # type: ignore[assignment]
            receipt = idempotent_operation("pay", pay, 7, session=session)
            session.commit()
            session.remove()  # type: ignore[attr-defined]
            return receipt
        return idempotent_operation("pay", pay, 7, session=session)

    @stage.task(name="order", retry=[0.01])
    def order(ctx: Context) -> str:
        with Session(engine) as session:
            receipt = in_form(session)
            session.commit()
        fail_first(ctx)
        return receipt

    assert await result_of(stage, order) == "receipt 7"
    assert paid(engine) == [7]


async def test_what_was_rolled_back_is_done_again(stage: Stage, engine: Engine) -> None:
    @stage.task(name="order", retry=[0.01])
    def order(ctx: Context) -> str:
        with Session(engine) as session:
            receipt = idempotent_operation("pay", pay, ctx.attempt, session=session)
            fail_first(ctx)
            session.commit()
        return receipt

    assert await result_of(stage, order) == "receipt 2"
    assert paid(engine) == [2]


async def test_a_function_that_fails_leaves_no_record(stage: Stage, engine: Engine) -> None:
    @stage.task(name="order", retry=[0.01])
    def order(ctx: Context) -> str:
        def fails() -> str:
            fail_first(ctx)
            return "done"

        with Session(engine) as session:
            try:
                return idempotent_operation("fails", fails, session=session)
            finally:
                session.commit()

    assert await result_of(stage, order) == "done"


async def test_a_result_that_cannot_be_kept_leaves_no_record(stage: Stage, engine: Engine) -> None:
    @stage.task(name="order", max_attempts=1)
    def order(ctx: Context) -> int:
        with Session(engine) as session, pytest.raises(OperationResultError):
            idempotent_operation("odd", lambda: float("nan"), session=session)
        with Session(engine) as session:
            mine = select(operations).where(operations.c.scope == ctx.task_id)
            return len(session.execute(mine).all())

    assert await result_of(stage, order) == 0


async def test_of_two_runs_at_once_one_has_the_effect(stage: Stage, engine: Engine) -> None:
    """In one attempt, in two transactions; SQLite lets one of them write at a time."""

    @stage.task(name="order")
    def order() -> list[str]:
        begun = threading.Event()

        def slow(number: int, session: Session) -> str:
            begun.set()
            return pay(number, session)

        def run() -> str:
            with Session(engine) as session:
                receipt = idempotent_operation("pay", slow, 7, session=session)
                session.commit()
            return receipt

        async def both() -> list[str]:
            first = asyncio.create_task(asyncio.to_thread(run))
            await asyncio.to_thread(begun.wait, 10)
            return list(await asyncio.gather(first, asyncio.to_thread(run)))

        return asyncio.run(both())

    assert await result_of(stage, order) == ["receipt 7"] * 2
    assert paid(engine) == [7]


async def test_old_rows_are_deleted(stage: Stage, engine: Engine) -> None:
    @stage.task(name="order")
    def order() -> str:
        with Session(engine) as session:
            receipt = idempotent_operation("pay", pay, 7, session=session)
            session.commit()
        return receipt

    await result_of(stage, order)
    with Session(engine) as session:
        assert delete_old(session, timedelta(hours=1)) == 0
        assert delete_old(session, timedelta(seconds=-60)) >= 1
        session.commit()
        assert session.execute(select(operations)).all() == []


async def test_an_async_session_does_the_same(stage: Stage, engine: Engine) -> None:
    url = engine.url
    if url.drivername == "mysql+pymysql":
        pytest.skip("its driver is not asynchronous")
    if url.drivername == "sqlite":
        url = url.set(drivername="sqlite+aiosqlite")
    other = create_async_engine(url)

    async def pay_async(number: int, session: AsyncSession) -> str:
        return await session.run_sync(lambda plain: pay(number, plain))

    @stage.task(name="order", retry=[0.01])
    async def order(ctx: Context) -> str:
        async with AsyncSession(other) as session:
            receipt = await idempotent_operation("pay", pay_async, 7, session=session)
            await session.commit()
        fail_first(ctx)
        return receipt

    assert await result_of(stage, order) == "receipt 7"
    await other.dispose()
    assert paid(engine) == [7]


async def test_a_session_of_the_other_kind_is_refused(stage: Stage, engine: Engine) -> None:
    @stage.task(name="order")
    async def order() -> str:
        async def nothing() -> None: ...

        with Session(engine) as session, pytest.raises(OperationUsageError, match="AsyncSession"):
            await idempotent_operation("pay", nothing, session=session)
        return "refused"

    assert await result_of(stage, order) == "refused"
