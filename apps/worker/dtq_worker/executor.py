"""The executor: one claim in hand, from validation to the outcome.

For every stream entry the order is: read (``claim``), validate, execute, and then, in one script
(``finish``): record completion and idempotency state, publish the lifecycle event, follow-up write,
ACK. The executor builds the outcome and decides nothing in Redis; a handler cannot break it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import structlog

from dtq_core.clock import mono_s
from dtq_core.decide import FALLBACK_DELAY_S, Decision, Policy, decide, outcome_name
from dtq_core.failpoints import reach
from dtq_core.limits import check_duration_ms
from dtq_core.logs import bind_attempt
from dtq_core.outcome import (
    Cancelled,
    Failed,
    GivenBack,
    Outcome,
    Succeeded,
    UnknownTask,
    describe_error,
)
from dtq_core.record import Claim, Spec, decode_spec
from dtq_core.settings import Settings
from dtq_core.tracing import is_active
from dtq_tasks import Context, Registry, Task
from dtq_tasks.execution import run_on_loop, run_plain, timed_out
from dtq_tasks.operations.scope import OperationScope, entered
from dtq_tasks.parameters import Call
from dtq_worker.failure_log import FailureLog
from dtq_worker.finisher import Finisher
from dtq_worker.held import Held, Stop
from dtq_worker.measurer import Measurer
from dtq_worker.runners import ThreadRunner
from dtq_worker.slots import Slots
from dtq_worker.tracer import Tracer, attempt_fields

_log = structlog.get_logger("dtq.executor")

STUCK_AFTER_S = 2.0
"""How long a handler on the loop may go on after it was told to stop."""


class Prepared(NamedTuple):
    """A claim that has been validated.

    Attributes:
        task: its handler.
        call: the arguments, the context among them.
        timeout: seconds the attempt may run; None is unlimited.
        policy: what its outcome is decided by.
        spec: what was asked for.
    """

    task: Task[..., Any]
    call: Call
    timeout: float | None
    policy: Policy
    spec: Spec


class Executor:
    """Runs claims, each in an asyncio task of its own."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        slots: Slots,
        finisher_of: Callable[[str], Finisher],
        operations_of: Callable[[Claim], OperationScope],
        on_stuck: Callable[[Held], None],
        measurer: Measurer,
        tracer: Tracer,
    ) -> None:
        """Set up.

        Args:
            registry: the handlers.
            settings: of this process.
            slots: freed when a handler's code has ended, not before.
            finisher_of: the finisher of a task id's partition.
            operations_of: what the operations of an attempt belong to.
            on_stuck: told of a handler that does not stop.
            measurer: told of each attempt.
            tracer: makes the spans of attempts, where any are made.
        """
        self._registry = registry
        self._settings = settings
        self._slots = slots
        self._finisher_of = finisher_of
        self._operations_of = operations_of
        self._on_stuck = on_stuck
        self._measurer = measurer
        self._tracer = tracer
        self._threads = ThreadRunner(slots.total)
        self._failures = FailureLog()
        self._policy = Policy(
            lambda _attempt: FALLBACK_DELAY_S,
            check_duration_ms("result_ttl", settings.result_ttl),
            check_duration_ms("unknown_task_timeout", settings.unknown_task_timeout),
            check_duration_ms("unknown_task_delay", settings.unknown_task_delay),
        )
        self._tells_each = settings.log_level == "debug"
        self.executed = 0

    def start(self, held: Held) -> None:
        """Begin to execute a claim; its slot is taken."""
        held.work = asyncio.get_running_loop().create_task(self._execute(held))

    def report(self, held: Held, outcome: Outcome, policy: Policy | None = None) -> None:
        """Send an outcome on its way, unless one is out already."""
        if not held.reported:
            decision = decide(held.claim, outcome, policy or self._policy)
            self._finisher_of(held.claim.task_id).put(held, decision)
            held.reported = True
            self._measurer.attempt(held, decision, known=not isinstance(outcome, UnknownTask))
            if not isinstance(outcome, Succeeded):
                self._failures.note(held, decision)
            if self._tells_each:
                _tell(held, decision)

    def close(self) -> None:
        """Let idle threads end, and say what was not logged yet."""
        self._threads.close()
        self._failures.close()

    async def _execute(self, held: Held) -> None:
        try:
            reach("execute.before")
            prepared = self._validate(held)
            if isinstance(prepared, Prepared):
                outcome = await self._run_told(held, prepared)
                reach("execute.after")
                self.report(held, outcome, prepared.policy)
            else:
                self.report(held, prepared)
        except Exception as error:  # a fault of ours must not leave a task in nobody's hands
            _log.exception("an attempt broke the executor", task_id=held.claim.task_id)
            self.report(held, Failed(describe_error(error)))
        finally:
            self.executed += 1
            self._slots.give()

    def _validate(self, held: Held) -> Prepared | Outcome:
        """Find the handler and read its arguments; a claim that cannot run has its outcome."""
        claim = held.claim
        try:
            spec = decode_spec(claim.spec)
            held.name = spec.name
            task = self._registry.get(spec.name)
            if task is None:
                return UnknownTask()
            call = task.decode(claim.payload)
        except BaseException as error:  # a type of the user's own may raise anything when made
            return Failed(describe_error(error), retry=False)
        timeout = spec.timeout or task.timeout
        if task.context_parameter is not None:
            held.context = self._context(held, task, timeout, spec.slot_ms)
            call = task.with_context(call, held.context)
        return Prepared(task, call, timeout, self._policy_of(task, spec.result_ttl), spec)

    def _policy_of(self, task: Task[..., Any], result_ttl: float | None) -> Policy:
        seconds = result_ttl or task.result_ttl
        if seconds is None:
            return self._policy._replace(retry_delay=task.retry_delay)
        ttl_ms = check_duration_ms("result_ttl", seconds)
        return self._policy._replace(retry_delay=task.retry_delay, result_ttl_ms=ttl_ms)

    def _context(
        self, held: Held, task: Task[..., Any], timeout: float | None, slot_ms: int | None
    ) -> Context:
        claim = held.claim
        deadline = None
        if timeout is not None:
            started = datetime.fromtimestamp(claim.started_ms / 1000, UTC)
            deadline = started + timedelta(seconds=timeout)
        return Context(
            task_id=claim.task_id,
            name=task.name,
            queue=claim.queue,
            attempt=claim.attempt,
            max_attempts=claim.max_attempts,
            deadline=deadline,
            slot=None if slot_ms is None else datetime.fromtimestamp(slot_ms / 1000, UTC),
        )

    async def _run_told(self, held: Held, prepared: Prepared) -> Outcome:
        """Run the handler; what it logs names its task, and it has a span where any are made."""
        claim, spec = held.claim, prepared.spec
        bind_attempt(attempt_fields(claim, spec.traceparent))
        run = functools.partial(self._run, held, prepared)
        return await (self._tracer.run(claim, spec, run) if is_active() else run())

    async def _run(self, held: Held, prepared: Prepared) -> Outcome:
        """Run the handler, under its timeout."""
        held.began_s = mono_s()
        if prepared.timeout is None:
            return await self._interruptible(held, prepared)
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(prepared.timeout, self._time_out, held, prepared)
        try:
            return await self._interruptible(held, prepared)
        finally:
            alarm.cancel()

    async def _interruptible(self, held: Held, prepared: Prepared) -> Outcome:
        if held.told_to_stop():
            return _interrupted(held, prepared)
        try:
            outcome = await self._call(held, prepared)
        except asyncio.CancelledError as error:
            if not held.told_to_stop():  # the handler has cancelled its own asyncio task
                return prepared.task.classify(error)
            return _interrupted(held, prepared)
        finally:
            held.interruptible = False
        if isinstance(outcome, Failed) and held.told_to_stop():
            return _interrupted(held, prepared)  # it answered the interruption with an error
        return outcome

    async def _call(self, held: Held, prepared: Prepared) -> Outcome:
        task, call, limit = prepared.task, prepared.call, self._settings.max_result_bytes
        with entered(self._operations_of(held.claim)):
            if task.runs_in == "loop":
                held.interruptible = True
                return await run_on_loop(task, call, limit)
            held.in_thread = True
            return await self._threads.run(functools.partial(run_plain, task, call, limit))

    def _time_out(self, held: Held, prepared: Prepared) -> None:
        held.interrupt(Stop.TIMEOUT)
        # Nothing stops a thread: its attempt is over now, though its slot stays taken.
        patience_s = 0.0 if held.in_thread else STUCK_AFTER_S
        asyncio.get_running_loop().call_later(patience_s, self._give_up, held, prepared)

    def _give_up(self, held: Held, prepared: Prepared) -> None:
        if not held.reported:
            self.report(held, _interrupted(held, prepared), prepared.policy)
            self._on_stuck(held)


def _tell(held: Held, decision: Decision) -> None:
    """Write the one line of an attempt that is written whatever became of it."""
    _log.debug(
        "attempt ended",
        task_id=held.claim.task_id,
        name=held.name,
        queue=held.claim.queue,
        attempt=held.claim.attempt,
        outcome=outcome_name(decision),
        ran_s=round(mono_s() - held.began_s, 6) if held.began_s else None,
    )


def _interrupted(held: Held, prepared: Prepared) -> Outcome:
    """What an attempt comes to that was told to stop, and did."""
    match held.stop:
        case Stop.CANCEL:
            return Cancelled("cancelled while running")
        case Stop.TIMEOUT:
            return timed_out(prepared.task, prepared.timeout or 0)
        case _:
            return GivenBack("the worker stops")
