import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest

from dtq_core.errors import InvalidArgumentsError, TaskFailedError
from dtq_core.outcome import Succeeded
from dtq_tasks import Context, GiveUp, Registry, Retry, TaskDecorator, fixed
from dtq_tasks.testing import TaskTester

task = TaskDecorator(Registry())


@dataclass
class Greeting:
    text: str


@task(max_attempts=3, retry=fixed(7), timeout=60)
async def greet(ctx: Context, user_id: int, *, attempt: int = 0, run: str = "") -> Greeting:
    await asyncio.sleep(0)
    ctx.progress(0.5, "half")
    assert ctx.deadline is not None
    if user_id == 0:
        raise ValueError("nobody")
    if user_id < 0:
        raise GiveUp("no such user")
    return Greeting(f"{ctx.name} {user_id} {ctx.attempt}/{ctx.max_attempts} {attempt}{run}")


@task(timeout=0.01, retry=[3])
async def slow() -> None:
    await asyncio.sleep(60)


@task(timeout=0.01, retry=[3])
def slow_plain() -> None:
    time.sleep(0.05)


@task
def ask_again(after: float, task: str, args: list[int], max_attempts: int) -> None:
    raise Retry(after=after, reason=f"{task} {args} {max_attempts}")


def test_a_result_arrives_as_whoever_submitted_would_get_it() -> None:
    run = TaskTester(greet, attempt=2).run(42, attempt=9, run="!")
    assert run.result == Greeting("greet 42 2/3 9!")
    assert run.outcome == Succeeded(b'{"text":"greet 42 2/3 9!"}')
    assert run.progress == {"value": 0.5, "note": "half"}
    assert run.error is None
    assert run.retry_in is None


async def test_inside_a_running_loop() -> None:
    assert (await TaskTester(greet).run_async(1)).result == Greeting("greet 1 1/3 0")
    assert (await TaskTester(ask_again).run_async(1, "t", [], 1)).retry_in == 1


def test_a_failure_is_tried_again_while_attempts_are_left() -> None:
    run = TaskTester(greet, attempt=2).run(0)
    assert run.retry_in == 7
    assert run.error is not None
    assert run.error.reason == "ValueError: nobody"
    with pytest.raises(TaskFailedError, match="is RETRYING: ValueError: nobody"):
        _ = run.result
    last = TaskTester(greet, attempt=3).run(0)
    assert last.retry_in is None
    with pytest.raises(TaskFailedError, match="is FAILED: ValueError: nobody"):
        _ = last.result
    assert TaskTester(greet, attempt=3, max_attempts=4).run(0).retry_in == 7


def test_giving_up_and_asking_again() -> None:
    assert TaskTester(greet).run(-1).retry_in is None
    run = TaskTester(ask_again).run(2.5, task="t", args=[1], max_attempts=2)
    assert run.retry_in == 2.5
    assert run.error is not None
    assert run.error.message == "t [1] 2"


@pytest.mark.parametrize("late", [slow, slow_plain])
def test_a_timeout_is_a_failed_attempt(late: Any) -> None:
    run = TaskTester(late).run()
    assert run.retry_in == 3
    assert run.error is not None
    assert run.error.type == "TimeoutError"


def test_wrong_arguments_are_refused_as_by_a_client() -> None:
    with pytest.raises(InvalidArgumentsError, match="user_id"):
        TaskTester(greet).run("x")  # type: ignore[arg-type]
