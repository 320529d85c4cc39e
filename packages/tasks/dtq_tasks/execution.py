"""Running a handler: whatever it returns or raises becomes an outcome.

Pure but for the handler itself. The worker adds time-outs, cancelling and threads.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import msgspec

from dtq_core import codec
from dtq_core.errors import EncodingError, InputError
from dtq_core.limits import MAX_RESULT_BYTES, check_size
from dtq_core.outcome import Failed, Succeeded, describe_error
from dtq_tasks.definition import Task
from dtq_tasks.parameters import Call

AnyTask = Task[..., Any]


def run_plain(
    task: AnyTask, call: Call, max_result_bytes: int = MAX_RESULT_BYTES
) -> Succeeded | Failed:
    """Run a handler in the calling thread, to its end. Raises nothing.

    Args:
        task: whose handler it is.
        call: its positional and keyword arguments, the context among them.
        max_result_bytes: the largest result, encoded.
    """
    args, kwargs = call
    try:
        return encode_result(task, task.function(*args, **kwargs), max_result_bytes)
    except BaseException as error:  # SystemExit is a failed attempt like any other
        return task.classify(error)


async def run_on_loop(
    task: AnyTask, call: Call, max_result_bytes: int = MAX_RESULT_BYTES
) -> Succeeded | Failed:
    """Run a handler on the event loop. Arguments as :func:`run_plain`.

    Raises:
        asyncio.CancelledError: if the running asyncio task was asked to cancel, and for no other
            reason.
    """
    args, kwargs = call
    try:
        value = task.function(*args, **kwargs)
        if inspect.isawaitable(value):
            value = await value
        return encode_result(task, value, max_result_bytes)
    except asyncio.CancelledError as error:
        runner = asyncio.current_task()
        if runner is not None and runner.cancelling():
            raise
        return task.classify(error)
    except BaseException as error:  # the loop would end with a SystemExit
        return task.classify(error)


def encode_result(
    task: AnyTask, value: Any, max_bytes: int = MAX_RESULT_BYTES
) -> Succeeded | Failed:
    """Return the outcome of a handler that returned.

    A result that cannot be kept is a failure for good: running the handler again would do its work
    again, and make the same result.

    Args:
        task: whose handler it was.
        value: what it returned.
        max_bytes: the largest result, encoded.
    """
    what = f"the result of {task.name}"
    try:
        if inspect.iscoroutine(value):
            value.close()
            raise EncodingError(f"{what} is a coroutine: use async def, or runs='loop'")
        text = codec.encode(value, what)
        check_size(what, len(text), max_bytes)
    except InputError as error:
        return Failed(msgspec.structs.replace(describe_error(error), traceback=""), retry=False)
    return Succeeded(text)


def timed_out(task: AnyTask, timeout_s: float) -> Failed:
    """Return the outcome of an attempt that took too long: a ``TimeoutError`` like any other."""
    return task.classify(TimeoutError(f"the attempt took longer than its {timeout_s:g} s"))
