"""Handlers that write down, outside dtq, when they start and end; some end with their process."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from dtq_tasks import Context, fixed, idempotent_operation, task
from dtq_tasks.operations.record import OnDoubt
from support.journal import note

_LIMIT_S = 60


@task(retry=fixed(0.05))
def work(ctx: Context, number: int = 0) -> int:
    note("start", ctx)
    note("end", ctx)
    return number


@task(retry=fixed(0.05))
def die(ctx: Context, attempts: int = 1) -> int:
    """Kill the process in the first so many attempts."""
    note("start", ctx)
    if ctx.attempt <= attempts:
        os.kill(os.getpid(), signal.SIGKILL)
    note("end", ctx)
    return ctx.attempt


@task(retry=fixed(0.05))
def fail_once(ctx: Context) -> int:
    """Fail in the first attempt."""
    note("start", ctx)
    note("end", ctx)
    if ctx.attempt == 1:
        raise ValueError("not yet")
    return ctx.attempt


@task(retry=fixed(0.05))
def linger(ctx: Context, until: str) -> int:
    """Run until a file exists."""
    note("start", ctx)
    end = time.monotonic() + _LIMIT_S
    while not Path(until).exists() and time.monotonic() < end:
        time.sleep(0.02)
    note("end", ctx)
    return ctx.attempt


@task(retry=fixed(0.05))
def rest(ctx: Context, seconds: float) -> int:
    """Run for a while."""
    note("start", ctx)
    time.sleep(seconds)
    note("end", ctx)
    return ctx.attempt


@task(retry=fixed(0.05))
def charge(ctx: Context, on_doubt: OnDoubt) -> str:
    """Have one effect outside, guarded in Redis."""
    note("start", ctx)
    receipt = idempotent_operation("charge", _charge, ctx, on_doubt=on_doubt)
    note("end", ctx)
    return receipt


def _charge(ctx: Context) -> str:
    note("effect", ctx)
    return "receipt"


@task(retry=fixed(0.05))
def pay(ctx: Context, url: str) -> int:
    """Have one effect in a database, guarded in the transaction of that."""
    note("start", ctx)
    engine = create_engine(url)
    with Session(engine) as session:
        number = idempotent_operation("pay", _pay, ctx.task_id, session=session)
        session.commit()
    engine.dispose()
    note("end", ctx)
    return number


def _pay(task_id: str, session: Session) -> int:
    session.execute(text("INSERT INTO payments VALUES (:id)"), {"id": task_id})
    return 42
