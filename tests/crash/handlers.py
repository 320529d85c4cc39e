"""Handlers that write down, outside dtq, when they start and end; some end with their process."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Literal

from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from dtq_core.errors import OperationInDoubtError
from dtq_tasks import Context, fixed, idempotent_operation, task
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


def _charge(ctx: Context) -> int:
    note("charge", ctx)
    return ctx.attempt


@task(retry=fixed(0.05))
def charge_once(ctx: Context, on_doubt: Literal["rerun", "raise"]) -> int:
    """Charge, or do without where that is in doubt."""
    note("start", ctx)
    with contextlib.suppress(OperationInDoubtError):
        idempotent_operation("charge", _charge, ctx, on_doubt=on_doubt)
    note("end", ctx)
    return ctx.attempt


def _insert(ctx: Context, session: Session) -> int:
    session.execute(text("INSERT INTO effects VALUES (:task)"), {"task": ctx.task_id})
    return ctx.attempt


def _die_at(point: str, dies: str, ctx: Context) -> None:
    if point == dies and ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@task(retry=fixed(0.05))
def charge_in_transaction(ctx: Context, database: str, dies: str) -> int:
    """Charge in a database; the first attempt may be killed around its commit."""
    note("start", ctx)
    engine = create_engine(database)
    with Session(engine) as session:
        result = idempotent_operation("charge", _insert, ctx, session=session)
        _die_at("before commit", dies, ctx)
        session.commit()
        _die_at("after commit", dies, ctx)
    engine.dispose()
    note("end", ctx)
    return int(result)
