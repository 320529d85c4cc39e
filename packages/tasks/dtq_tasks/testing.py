"""Runs a task without Redis and without a worker: for the tests of those who write handlers.

::

    run = TaskTester(send_welcome, attempt=2).run(42)
    assert run.result == "sent"

The way is the real one: arguments are encoded and decoded, the result is encoded, a failure goes
through the task's retry policy, and what becomes of the task is decided as in a worker.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, ParamSpec, TypeVar

from dtq_core import codec
from dtq_core.clock import mono_s
from dtq_core.decide import Decision, Finish, Policy, decide
from dtq_core.errors import TaskFailedError
from dtq_core.outcome import ErrorInfo, Failed, Succeeded
from dtq_core.record import DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE, Claim
from dtq_tasks.context import Context
from dtq_tasks.definition import Task
from dtq_tasks.execution import run_on_loop, run_plain, timed_out
from dtq_tasks.operations.memory import MemoryOperations
from dtq_tasks.operations.scope import entered
from dtq_tasks.parameters import Call

P = ParamSpec("P")
R = TypeVar("R")

TEST_TASK_ID = "0" * 32


@dataclass(frozen=True, slots=True)
class TaskRun(Generic[R]):
    """One attempt, run by a :class:`TaskTester`.

    Attributes:
        task: what was run.
        outcome: what its handler did.
        decision: what a worker would have made of that.
        progress: the newest progress that the handler reported, None where it reported none.
    """

    task: Task[..., R]
    outcome: Succeeded | Failed
    decision: Decision
    progress: Any

    @property
    def result(self) -> R:
        """The result, as whoever submitted the task would get it.

        Raises:
            TaskFailedError: if the attempt failed.
        """
        if isinstance(self.outcome, Succeeded):
            return self.task.decode_result(self.outcome.result)
        status = "FAILED" if self.retry_in is None else "RETRYING"
        raise TaskFailedError(TEST_TASK_ID, status, self.outcome.error.reason)

    @property
    def error(self) -> ErrorInfo | None:
        """Why the attempt failed; None if it did not."""
        return self.outcome.error if isinstance(self.outcome, Failed) else None

    @property
    def retry_in(self) -> float | None:
        """Seconds until the next attempt; None if there will be none."""
        if isinstance(self.decision, Finish) and self.decision.outcome == "retry":
            return self.decision.delay_ms / 1000
        return None


class TaskTester(Generic[P, R]):
    """Runs one attempt of a task, here and now."""

    def __init__(
        self,
        task: Task[P, R],
        *,
        attempt: int = 1,
        max_attempts: int | None = None,
        operations: MemoryOperations | None = None,
    ) -> None:
        """Say which attempt is to be run.

        Args:
            task: the task.
            attempt: number of the attempt, from 1.
            max_attempts: how many there are, the task's own number unless given.
            operations: what earlier attempts have done; give several testers the same, and they run
                attempts of the same task. Unless given, nothing was done before the first run.
        """
        self._operations = operations or MemoryOperations()
        self._task = task
        self._attempt = attempt
        self._max_attempts = task.defaults.max_attempts if max_attempts is None else max_attempts

    def run(self, *args: P.args, **kwargs: P.kwargs) -> TaskRun[R]:
        """Run the attempt; an ``async def`` handler gets an event loop of its own.

        Args:
            *args: of the handler, without its context.
            **kwargs: likewise.

        Raises:
            InvalidArgumentsError: if submitting would refuse the arguments.
        """
        context, call = self._prepare(args, kwargs)
        with entered(self._operations.attempt(TEST_TASK_ID)):
            if self._task.runs_in == "loop":
                return self._ended(context, asyncio.run(self._run_on_loop(call)))
            return self._ended(context, self._run_plain(call))

    async def run_async(self, *args: P.args, **kwargs: P.kwargs) -> TaskRun[R]:
        """Run the attempt inside a running event loop. Arguments and errors as :meth:`run`."""
        context, call = self._prepare(args, kwargs)
        with entered(self._operations.attempt(TEST_TASK_ID)):
            if self._task.runs_in == "loop":
                return self._ended(context, await self._run_on_loop(call))
            return self._ended(context, await asyncio.to_thread(self._run_plain, call))

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Context, Call]:
        timeout = self._task.timeout
        context = make_context(
            name=self._task.name,
            queue=self._task.defaults.queue,
            attempt=self._attempt,
            max_attempts=self._max_attempts,
            deadline=None if timeout is None else datetime.now(UTC) + timedelta(seconds=timeout),
        )
        call = self._task.decode(self._task.encode(args, kwargs))
        return context, self._task.with_context(call, context)

    async def _run_on_loop(self, call: Call) -> Succeeded | Failed:
        timeout = self._task.timeout
        if timeout is None:
            return await run_on_loop(self._task, call)
        try:
            return await asyncio.wait_for(run_on_loop(self._task, call), timeout)
        except TimeoutError:
            return timed_out(self._task, timeout)

    def _run_plain(self, call: Call) -> Succeeded | Failed:
        """A plain function cannot be interrupted: it counts as timed out once it has ended."""
        start_s = mono_s()
        outcome = run_plain(self._task, call)
        timeout = self._task.timeout
        if timeout is not None and mono_s() - start_s > timeout:
            return timed_out(self._task, timeout)
        return outcome

    def _ended(self, context: Context, outcome: Succeeded | Failed) -> TaskRun[R]:
        policy = Policy(
            self._task.retry_delay, result_ttl_ms=0, unknown_timeout_ms=0, unknown_delay_ms=0
        )
        decision = decide(self._claim(), outcome, policy)
        progress = context.take_progress()
        return TaskRun(
            self._task,
            outcome,
            decision,
            None if progress is None else codec.decode(progress, "progress"),
        )

    def _claim(self) -> Claim:
        return Claim(
            task_id=TEST_TASK_ID,
            queue=self._task.defaults.queue,
            band=self._task.defaults.band,
            entry_id="0-1",
            attempt=self._attempt,
            max_attempts=self._max_attempts,
            lease=self._attempt,
            spec=b"",
            payload=b"",
            submitted_ms=0,
            queued_ms=0,
            started_ms=0,
            postponed_ms=0,
            crashes=0,
            releases=0,
        )


def make_context(
    *,
    task_id: str = TEST_TASK_ID,
    name: str = "test",
    queue: str = DEFAULT_QUEUE,
    attempt: int = 1,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
    deadline: datetime | None = None,
) -> Context:
    """Return a context for calling a handler directly. Arguments as of :class:`Context`."""
    return Context(
        task_id=task_id,
        name=name,
        queue=queue,
        attempt=attempt,
        max_attempts=max_attempts,
        deadline=deadline,
    )
