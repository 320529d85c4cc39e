"""The blocking client."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from dtq_client.handle import Handle
from dtq_client.patience import Patience
from dtq_client.requests import (
    Arguments,
    CancelAnswer,
    Requests,
    accepted,
    cancel_answer,
    checked_reason,
    make_options,
    result_of,
    unwrap,
)
from dtq_client.waiting_thread import WaitingThread
from dtq_core import codec, reads
from dtq_core.calls import Calls, Submitted
from dtq_core.durability import Confirmation
from dtq_core.errors import RedisError, ResultTimeoutError, TaskNotFoundError
from dtq_core.failpoints import reach
from dtq_core.reads import Outcome
from dtq_core.record import Attempt, Options, Submission, TaskInfo
from dtq_core.scripts import Code
from dtq_core.settings import load
from dtq_core.store import Store
from dtq_core.tracing import submitting
from dtq_tasks import Task, TaskWithOptions

P = ParamSpec("P")
R = TypeVar("R")


class Client:
    """Submits tasks and asks after them; may be shared by threads, and used on after a fork.

    Nothing is sent before the first call, so a program starts even while Redis is away. A call
    that meets a server that is away is sent again for ``retry_timeout`` seconds: the same task,
    whether or not the first try arrived.
    """

    def __init__(self, redis_url: str | None = None, **settings: Any) -> None:
        """Prepare a client.

        Args:
            redis_url: the server; from ``DTQ_REDIS_URL``, ``dtq.toml`` or this project's embedded
                server unless given.
            settings: any other setting by name, as ``prefix="shop"``; durations in seconds.

        Raises:
            SettingsError: for an unknown or wrong setting.
            RedisUnavailableError: when no server is named and none runs for this project.
        """
        self.settings = load({"redis_url": redis_url, **settings})
        self.store = Store(self.settings)
        self.requests = Requests(self.settings, self.store.partitions)
        self._checked: set[bool] = set()
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: dict[int, WaitingThread] = {}  # by process: a fork has no threads

    def submit(
        self, task: Task[P, R] | TaskWithOptions[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Handle[R]:
        """Submit a task; when this returns, it is accepted.

        Args:
            task: the handler, or ``handler.options(...)``.
            args: the handler's own arguments.
            kwargs: the handler's own arguments.

        Returns:
            A handle; of the existing task where the idempotency key was used before.

        Raises:
            InputError: for arguments or options that are refused; nothing was written.
            OutcomeUnknownError: if it was sent, and its acceptance is not confirmed: the server
                went away in the middle, or the durability asked for was not reached in time.
            RedisError: if the server cannot take it; nothing was written.
        """
        plain, options = unwrap(task)
        submission = self.requests.of_task(task, args, kwargs)
        return self._send(submission, plain, options)

    def submit_many(
        self, task: Task[P, R] | TaskWithOptions[P, R], calls: Iterable[Arguments]
    ) -> list[Handle[R]]:
        """Submit many calls of one handler, up to 500 in each round trip.

        Args:
            task: the handler, or ``handler.options(...)``.
            calls: for each task a tuple of its arguments, or a mapping of them by name.

        Returns:
            A handle for each, in order.

        Raises:
            InputError: if any call is refused; nothing was written.
            OutcomeUnknownError: as :meth:`submit`, for the tasks of one round trip; those of
                earlier ones are accepted, those of later ones were not sent.
            RedisError: if the server cannot take them; earlier batches may have been accepted.
        """
        plain, options = unwrap(task)
        submissions = self.requests.of_many(task, calls)
        confirmation = self._ready(options.durability)
        for index, batch in self.requests.batches(submissions):
            for answer in self._submit(self.store.calls[index], batch, confirmation):
                accepted(answer, "")
        return [Handle(self, submission.task_id, plain) for submission in submissions]

    def submit_by_name(
        self,
        name: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Handle[Any]:
        """Submit a task whose handler this program does not have.

        Args:
            name: the task's name.
            args: its positional arguments.
            kwargs: its arguments by name.
            options: fields of :class:`dtq_core.record.Options`.

        Returns and raises as :meth:`submit`.
        """
        made = make_options(options)
        submission = self.requests.by_name(name, args, kwargs or {}, made)
        return self._send(submission, None, made)

    def submit_each(
        self, submissions: Sequence[Submission], durability: str | None = None
    ) -> list[Submitted | RedisError]:
        """Submit tasks of any kind, as :class:`Requests` makes them, and say what became of each.

        Args:
            submissions: made by :attr:`requests`.
            durability: how far they must have got; the setting unless given.

        Returns:
            In order, the answer of the server, which may be that a key is taken; or why there is
            none.

        Raises:
            RedisError: if the server is not fit, or cannot be reached at all; nothing was sent.
        """
        confirmation = self._ready(durability)
        answers: dict[str, Submitted | RedisError] = {}
        for index, batch in self.requests.batches(submissions):
            try:
                found: Iterable[Submitted | RedisError] = self._submit(
                    self.store.calls[index], batch, confirmation
                )
            except RedisError as error:
                found = [error] * len(batch)
            answers.update(zip((one.task_id for one in batch), found, strict=True))
        return [answers[submission.task_id] for submission in submissions]

    def get(self, task_id: str) -> TaskInfo:
        """Return what is known of a task.

        Raises:
            TaskNotFoundError: if there is no such task.
            InvalidNameError: if it is no id at all.
        """
        read = reads.task(self.store.keys_of(task_id), task_id)
        self._check()
        info = self.store.read(read)
        if info is None:
            raise TaskNotFoundError(task_id)
        return info

    def result(
        self, task_id: str, timeout: float | None = None, *, task: Task[..., Any] | None = None
    ) -> Any:
        """Wait for the result of a task.

        Args:
            task_id: the task.
            timeout: seconds to wait; None for as long as it takes, 0 not at all.
            task: its handler, whose return type the result is read as.

        Raises:
            ResultTimeoutError: if it had not ended in time.
            TaskNotSucceededError: if it failed, was cancelled or expired.
            ResultExpiredError: if its result is no longer kept.
            TaskNotFoundError: if there is no such task.
            RedisError: if the server cannot tell.
        """
        text = result_of(self.outcome(task_id, timeout))
        if text is None:
            raise ResultTimeoutError(f"task {task_id} had not ended after {timeout} s")
        return codec.decode(text, "result") if task is None else task.decode_result(text)

    def outcome(self, task_id: str, timeout: float | None = None) -> Outcome:
        """Wait for the end of a task, however it ends.

        Args:
            task_id: the task.
            timeout: seconds to wait; None for as long as it takes, 0 not at all.

        Returns:
            The task as it stands then, and the JSON text of its result where it has one.

        Raises:
            TaskNotFoundError: if there is no such task.
            RedisError: if the server cannot tell.
        """
        patience, retry_s = Patience(timeout), self.settings.retry_timeout
        read = reads.outcome(self.store.keys_of(task_id), task_id)
        self._check(retry_s=patience.at_most(retry_s))
        while True:
            found = self.store.read(read, retry_s=patience.at_most(retry_s))
            if found is None:
                raise TaskNotFoundError(task_id)
            left_s = patience.left_s
            if found.info.status.terminal or left_s == 0:
                return found
            if not self._wait(task_id, left_s):
                return found

    def cancel(self, task_id: str, reason: str = "") -> CancelAnswer:
        """Cancel a task: at once where it waits, by asking its worker where it runs.

        Args:
            task_id: the task.
            reason: kept with it; "cancelled" unless given.
        """
        call = self.store.calls_of(task_id).cancel([task_id], checked_reason(reason))
        self._check()
        reach("cancel.before")
        answers = self.store.run(call)
        reach("cancel.after")
        return cancel_answer(answers[0], task_id)

    def attempts(self, task_id: str) -> list[Attempt]:
        """Return the ended attempts of a task, oldest first. Errors as :meth:`get`."""
        read = reads.attempts(self.store.keys_of(task_id), task_id)
        self._check()
        found = self.store.read(read)
        if found is None:
            raise TaskNotFoundError(task_id)
        return found

    def handle(self, task_id: str) -> Handle[Any]:
        """Return a handle of a task by its id; nothing is sent."""
        self.store.keys_of(task_id)
        return Handle(self, task_id, None)

    def close(self) -> None:
        """Close the connections; whoever still waits is told by a :class:`DtqError`."""
        with self._lock:
            waiting = self._waiting.pop(os.getpid(), None)
        if waiting is not None:
            waiting.close()
        self.store.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, *, lay_out: bool = False, retry_s: float | None = None) -> None:
        """Check the server, once for looking, which leaves no mark on it, and once for writing."""
        if lay_out not in self._checked:
            limit = self.settings.retry_timeout if retry_s is None else retry_s
            self.store.check(lay_out=lay_out, retry_s=limit)
            self._checked |= {False, lay_out}

    def _ready(self, durability: str | None) -> Confirmation | None:
        """Check the server for a submission, and return how that is confirmed."""
        confirmation = self.store.confirmation(durability or self.settings.durability)
        self._check(lay_out=True)
        return confirmation

    def _send(
        self, submission: Submission, task: Task[..., R] | None, options: Options
    ) -> Handle[R]:
        confirmation = self._ready(options.durability)
        calls = self.store.calls_of(submission.task_id)
        answers = self._submit(calls, [submission], confirmation)
        answer = accepted(answers[0], submission.idempotency_key)
        return Handle(self, answer.task_id, task, duplicate=answer.code is Code.DUPLICATE)

    def _submit(
        self, calls: Calls, batch: Sequence[Submission], confirmation: Confirmation | None
    ) -> list[Submitted]:
        reach("submit.before")
        with submitting(batch) as sent:
            answers = self.store.run(calls.submit(sent, confirmation))
        reach("submit.after")
        return answers

    def _wait(self, task_id: str, timeout_s: float | None) -> bool:
        if self._pid != os.getpid():  # another thread of the parent may have held the lock
            self._pid = os.getpid()
            self._lock = threading.Lock()
        with self._lock:
            waiting = self._waiting.get(os.getpid()) or WaitingThread(self.store)
            self._waiting[os.getpid()] = waiting
            ended = waiting.start(task_id, timeout_s)
        try:
            return ended.result()
        except KeyboardInterrupt:  # nobody waits any more
            ended.cancel()
            raise
