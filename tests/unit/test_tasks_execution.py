import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dtq_core.errors import InvalidOptionError
from dtq_core.limits import MAX_ERROR_BYTES
from dtq_core.outcome import Failed, Succeeded
from dtq_tasks import GiveUp, Retry, Task
from dtq_tasks.execution import encode_result, run_on_loop, run_plain, timed_out

NO_ARGUMENTS: tuple[tuple[()], dict[str, Any]] = ((), {})


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise SystemExit


def make(function: Callable[..., Any], **declaration: Any) -> Task[..., Any]:
    return Task(function, name="made", **declaration)


def outcome_of(error: BaseException, **declaration: Any) -> Failed:
    def handler() -> None:
        raise error

    outcome = run_plain(make(handler, **declaration), NO_ARGUMENTS)
    assert isinstance(outcome, Failed)
    return outcome


ODD_ERRORS = [
    SystemExit(1),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopIteration(5),
    UnprintableError(),
    MemoryError(),
    ValueError("\ud800\0" * 10_000),
    ExceptionGroup("many", [ValueError(1), ValueError(2)]),
]


@pytest.mark.parametrize("error", ODD_ERRORS)
async def test_any_exception_is_an_ordinary_failure(error: BaseException) -> None:
    async def handler() -> None:
        raise error

    for outcome in (outcome_of(error), await run_on_loop(make(handler), NO_ARGUMENTS)):
        assert isinstance(outcome, Failed)
        assert outcome.retry
        assert outcome.after_s is None
        assert len(outcome.error.message.encode()) <= MAX_ERROR_BYTES
        assert outcome.error.reason.isprintable()


async def test_endless_recursion_is_an_ordinary_failure() -> None:
    def handler() -> None:
        handler()

    for outcome in (
        run_plain(make(handler), NO_ARGUMENTS),
        await run_on_loop(make(handler, runs="loop"), NO_ARGUMENTS),
    ):
        assert isinstance(outcome, Failed)
        assert outcome.error.type == "RecursionError"


async def test_a_handler_runs_with_its_arguments() -> None:
    def handler(a: int, *, b: int) -> int:
        return a * b

    async def async_handler(a: int, *, b: int) -> int:
        await asyncio.sleep(0)
        return a * b

    assert run_plain(make(handler), ((6,), {"b": 7})) == Succeeded(b"42")
    assert await run_on_loop(make(handler, runs="loop"), ((6,), {"b": 7})) == Succeeded(b"42")
    assert await run_on_loop(make(async_handler), ((6,), {"b": 7})) == Succeeded(b"42")


async def test_cancelling_from_outside_is_not_a_failure() -> None:
    started = asyncio.Event()

    async def handler() -> None:
        started.set()
        await asyncio.sleep(60)

    running = asyncio.create_task(run_on_loop(make(handler), NO_ARGUMENTS))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_time_limit_of_the_handlers_own_is_an_ordinary_failure() -> None:
    async def handler() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    outcome = await run_on_loop(make(handler), NO_ARGUMENTS)
    assert isinstance(outcome, Failed)
    assert outcome.error.type == "TimeoutError"


def test_a_wrapped_coroutine_in_a_thread_is_refused_with_advice() -> None:
    async def inner() -> int:
        return 1

    outcome = run_plain(make(lambda: inner()), NO_ARGUMENTS)
    assert isinstance(outcome, Failed)
    assert not outcome.retry
    assert (
        outcome.error.message == "the result of made is a coroutine: use async def, or runs='loop'"
    )


async def test_a_wrapped_coroutine_on_the_loop_is_awaited() -> None:
    async def inner() -> int:
        return 1

    task = make(lambda: inner(), runs="loop")
    assert await run_on_loop(task, NO_ARGUMENTS) == Succeeded(b"1")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (object(), "the result of made cannot be encoded: a object has no JSON form"),
        (float("nan"), "the result of made holds NaN or infinity, which JSON cannot say"),
        ("x" * 50, "the result of made is 52 bytes, over the limit of 40"),
        ("\ud800", "the result of made holds text with a lone surrogate"),
    ],
)
def test_a_result_that_cannot_be_kept_is_a_failure_for_good(result: Any, message: str) -> None:
    outcome = encode_result(make(lambda: None), result, max_bytes=40)
    assert isinstance(outcome, Failed)
    assert not outcome.retry
    assert outcome.error.message.startswith(message)
    assert outcome.error.traceback == ""


def test_an_encoder_that_breaks_is_a_failure() -> None:
    class Model:
        def model_dump(self, **_: Any) -> Any:
            raise SystemExit(1)

    outcome = run_plain(make(lambda: Model()), NO_ARGUMENTS)
    assert isinstance(outcome, Failed)


def test_a_handler_asks_for_another_attempt() -> None:
    outcome = outcome_of(Retry(after=5, reason="busy"))
    assert (outcome.retry, outcome.after_s) == (True, 5)
    assert outcome.error.reason == "Retry: busy"
    assert outcome_of(Retry()).after_s is None
    assert outcome_of(Retry(), retry_on=ValueError).retry


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), "5"])
def test_a_wrong_wait_is_refused(after: Any) -> None:
    with pytest.raises(InvalidOptionError, match="after"):
        Retry(after=after)


def test_a_handler_gives_up() -> None:
    outcome = outcome_of(GiveUp("no such user"))
    assert not outcome.retry
    assert outcome.error.reason == "GiveUp: no such user"
    assert not outcome_of(GiveUp(), retry_on=Exception).retry


def test_rules_decide_which_errors_are_worth_another_attempt() -> None:
    assert outcome_of(KeyError(), retry_on=LookupError).retry
    assert not outcome_of(ValueError(), retry_on=LookupError).retry
    assert outcome_of(ValueError(), retry_on=(LookupError, ValueError)).retry
    assert not outcome_of(KeyError(), give_up_on=LookupError).retry
    assert not outcome_of(KeyError(), retry_on=LookupError, give_up_on=(KeyError,)).retry
    assert outcome_of(IndexError(), retry_on=LookupError, give_up_on=(KeyError,)).retry


def test_a_group_of_one_counts_as_that_one() -> None:
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [Retry(after=3)])])
    assert outcome_of(group).after_s == 3
    assert not outcome_of(ExceptionGroup("tasks", [GiveUp()])).retry
    assert not outcome_of(ExceptionGroup("tasks", [KeyError()]), give_up_on=KeyError).retry
    assert outcome_of(ExceptionGroup("tasks", [KeyError(), KeyError()]), give_up_on=KeyError).retry


def test_a_time_out_follows_the_rules() -> None:
    outcome = timed_out(make(lambda: None), 30)
    assert outcome.retry
    assert outcome.error.reason == "TimeoutError: the attempt took longer than its 30 s"
    assert not timed_out(make(lambda: None, give_up_on=TimeoutError), 1).retry
