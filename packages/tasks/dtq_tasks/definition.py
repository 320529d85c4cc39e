"""A task: a handler with a name, and all that is known about running it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

import msgspec

from dtq_core.cron import CronSchedule, Misfire, Origin, Overlap, check_schedule
from dtq_core.errors import InvalidNameError, InvalidOptionError
from dtq_core.limits import check_name
from dtq_core.outcome import Failed
from dtq_core.record import Options
from dtq_tasks.arguments import Arguments
from dtq_tasks.context import Context
from dtq_tasks.failures import ErrorTypes, FailureRules
from dtq_tasks.injection import Injection
from dtq_tasks.options import Defaults, Overrides, RunsIn, check_keywords
from dtq_tasks.parameters import Call, Parameters
from dtq_tasks.retry import RetryPolicy, as_policy, exponential
from dtq_tasks.typehints import ResultReader, resolve_all

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_RETRY = exponential(base=1, cap=300)


class Task(Generic[P, R]):
    """A handler that can be submitted. Made by :data:`dtq_tasks.task`.

    Calling it calls the plain function, so that handlers are tested like any other function.

    Attributes:
        function: the handler itself.
        name: what submissions and workers call it.
        defaults: the options of a submission that asks for nothing else.
        timeout: seconds one attempt may run, where the submission does not say; None is unlimited.
        result_ttl: seconds a result stays, where the submission does not say.
        retry_delay: seconds to wait, by the number of the attempt that failed.
        runs_in: ``"loop"`` or ``"thread"``.
        schedule: when it recurs; None where it does not.
        context_parameter: which parameter the worker fills in, None where there is none.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        retry_on: ErrorTypes = BaseException,
        give_up_on: ErrorTypes = (),
        timeout: float | None = None,
        result_ttl: float | None = None,
        runs: RunsIn | None = None,
        cron: str | None = None,
        tz: str = "UTC",
        misfire: str = Misfire.ONCE,
        overlap: str = Overlap.ALLOW,
        **defaults: Unpack[Defaults],
    ) -> None:
        """Declare a task; everything about it is checked here.

        Args:
            function: the handler, ``def`` or ``async def``.
            name: its name, the function's own unless given.
            retry: how long to wait before the next attempt; see :mod:`dtq_tasks.retry`.
            retry_on: the errors that are worth another attempt; all unless given.
            give_up_on: the errors that are not, even if ``retry_on`` says so.
            timeout: seconds one attempt may run.
            result_ttl: seconds a result stays.
            runs: where the handler runs: ``async def`` on the event loop, ``def`` in a thread
                unless given. A ``def`` that never blocks may run on the loop.
            cron: when it is submitted without anybody asking, as ``"*/5 * * * *"``; see
                :mod:`dtq_core.cron`. It must be callable without arguments.
            tz: the time zone of that, by its IANA name.
            misfire: what becomes of missed times: ``"skip"``, ``"once"`` or ``"all"``.
            overlap: whether it is submitted while an earlier one has not ended: ``"allow"`` or
                ``"skip"``.
            **defaults: queue, band, max_attempts, ttl and dead_letter of its submissions.

        Raises:
            InvalidNameError: for a name that breaks the rule.
            InvalidOptionError: for an option out of bounds, or a handler that cannot be a task.
        """
        functools.update_wrapper(self, _checked_function(function), updated=())
        self.function = function
        self.name = _checked_name(name, function)
        checked = Options(**defaults, timeout=timeout, result_ttl=result_ttl)
        self.defaults = msgspec.structs.replace(checked, timeout=None, result_ttl=None)
        self.timeout = timeout
        self.result_ttl = result_ttl
        self.retry_delay = as_policy(retry)
        self.runs_in = _checked_runs(runs, function)
        self._failures = FailureRules(retry_on, give_up_on)
        signature = inspect.signature(function)
        types = resolve_all(signature, function, self.name)
        self._injection = Injection(self.name, signature, types, Context)
        self.context_parameter = self._injection.parameter
        self._arguments = Arguments(
            self.name,
            Parameters(self.name, self._injection.signature, types, self._injection.reserved),
        )
        self.schedule = None if cron is None else self._scheduled(cron, tz, misfire, overlap)

    def _scheduled(self, cron: str, tz: str, misfire: str, overlap: str) -> CronSchedule:
        made = CronSchedule(
            task=self.name,
            cron=cron,
            tz=tz,
            payload=self.encode((), {}).decode(),
            options=self.defaults,
            misfire=misfire,  # type: ignore[arg-type]  # checked below
            overlap=overlap,  # type: ignore[arg-type]
            origin=Origin.CODE,
        )
        return check_schedule(made)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the handler itself, here and now."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def options(self, **overrides: Unpack[Overrides]) -> TaskWithOptions[P, R]:
        """Return this task with other options for its next submissions; no I/O.

        Args:
            **overrides: fields of :class:`dtq_core.record.Options`.

        Raises:
            InvalidOptionError: for an unknown name or a value out of its bounds.
            InvalidNameError: for a queue or idempotency key that breaks its rule.
        """
        check_keywords(overrides, Overrides, f"task {self.name}")
        return TaskWithOptions(self, msgspec.structs.replace(self.defaults, **overrides))

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """Return arguments as a payload: JSON of ``[args, kwargs]``.

        Raises:
            InvalidArgumentsError: if they do not fit the signature or their types, have no JSON
                form, or would arrive as other values. It names the argument.
        """
        return self._arguments.encode(args, kwargs)

    def decode(self, payload: bytes) -> Call:
        """Return the arguments in a payload; the context is not among them.

        Raises:
            InvalidArgumentsError: if they do not fit the signature or their types. It names the
                argument.
        """
        return self._arguments.decode(payload)

    def with_context(self, call: Call, context: Context) -> Call:
        """Return decoded arguments as the handler takes them, its context in its place."""
        return self._injection.merge(call, context)

    def decode_result(self, text: bytes) -> R:
        """Return a result from its JSON.

        It is made into the type that the handler is annotated to return. Where there is no such
        annotation, or the result does not fit, it is returned as plain JSON values.

        Raises:
            EncodingError: if it is not JSON.
        """
        return self._result_reader.read(text)  # type: ignore[no-any-return]

    def classify(self, error: BaseException) -> Failed:
        """Return the outcome of a handler that raised."""
        return self._failures.classify(error)

    @functools.cached_property
    def _result_reader(self) -> ResultReader:
        return ResultReader(self.function, f"the result of {self.name}")


@dataclass(frozen=True, slots=True)
class TaskWithOptions(Generic[P, R]):
    """A task, and how its next submissions are to be run. Made by :meth:`Task.options`.

    Attributes:
        task: the task.
        options: how; what was not asked for is the task's own default.
    """

    task: Task[P, R]
    options: Options


def _checked_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isfunction(function):
        raise InvalidOptionError(f"{function!r} cannot be a task: use a def or async def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOptionError(f"{function.__qualname__} yields; a task returns its result")
    return function


def _checked_name(name: str | None, function: Callable[..., Any]) -> str:
    try:
        return check_name("task name", function.__name__ if name is None else name)
    except InvalidNameError as error:
        hint = "" if name else "; give the task a name of its own: @task(name=…)"
        raise InvalidNameError(f"{error}{hint}") from None


def _checked_runs(runs: RunsIn | None, function: Callable[..., Any]) -> RunsIn:
    is_async = inspect.iscoroutinefunction(function)
    if runs is None:
        return "loop" if is_async else "thread"
    if runs not in {"loop", "thread"}:
        raise InvalidOptionError(f"runs {runs!r} is not offered: use 'loop' or 'thread'")
    if runs == "thread" and is_async:
        raise InvalidOptionError(f"{function.__qualname__} is async: it runs on the loop")
    return runs
