"""Handlers that no worker should have to bear, and those of the crash tests.

Each writes down, outside dtq, when it starts.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import sys
import time
from typing import Any

import crash.handlers
from dtq import Client
from dtq_tasks import Context, fixed, task
from support.journal import note

assert crash.handlers

_MIB = 1_048_576


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@task(retry=fixed(0.05))
async def block_loop(ctx: Context, seconds: float) -> int:
    note("start", ctx)
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    note("end", ctx)
    return ctx.attempt


@task(retry=fixed(0.05))
async def linger_on_loop(ctx: Context, until: str) -> int:
    """Run until a file exists."""
    note("start", ctx)
    while not os.path.exists(until):  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.5)
    note("end", ctx)
    return ctx.attempt


@task(retry=fixed(0.05))
def hold_gil(ctx: Context, seconds: float) -> int:
    """In the first attempt, call C code that keeps the interpreter's lock."""
    note("start", ctx)
    if ctx.attempt == 1:
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    note("end", ctx)
    return ctx.attempt


@task(max_attempts=1)
def exit_process(ctx: Context, code: int) -> None:
    note("start", ctx)
    os._exit(code)


@task(max_attempts=1)
def segfault(ctx: Context) -> None:
    note("start", ctx)
    ctypes.string_at(0)


@task(max_attempts=1)
def exhaust_memory(ctx: Context) -> None:
    """Ask for more memory than this process may have."""
    note("start", ctx)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_used_bytes() + 64 * _MIB, limits[1]))
    try:
        hoard = []
        while True:
            hoard.append(bytearray(16 * _MIB))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _used_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


@task(max_attempts=1)
async def swallow_cancellation(ctx: Context, seconds: float) -> None:
    note("start", ctx)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            note("cancelled", ctx)


@task(max_attempts=1)
def raise_unprintable(ctx: Context) -> None:
    note("start", ctx)
    raise UnprintableError


@task(max_attempts=1)
def raise_exit(ctx: Context) -> None:
    note("start", ctx)
    sys.exit(3)


@task(max_attempts=1)
def return_unencodable(ctx: Context) -> Any:
    note("start", ctx)
    return {1, 2, open(os.devnull)}


@task(retry=fixed(0.05))
def go_on(ctx: Context, key: str, first: bool) -> str:
    """Submit a task of the same idempotency key, as the first or as the last step."""
    note("start", ctx)
    if not first:
        time.sleep(0.02)
    with Client() as client:
        handle = client.submit(go_on.options(idempotency_key=key), key, first)
    note("end", ctx)
    return handle.id
