"""The client for an event loop: the methods of :class:`~dtq_client.client.Client`, awaited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from dtq_client.handle import AsyncHandle
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
from dtq_client.waiting import Waiting
from dtq_core import codec, reads
from dtq_core.calls import Calls, Submitted
from dtq_core.durability import Confirmation
from dtq_core.errors import RedisError, ResultTimeoutError, TaskNotFoundError
from dtq_core.failpoints import reach
from dtq_core.reads import Outcome
from dtq_core.record import Attempt, Options, Submission, TaskInfo
from dtq_core.scripts import Code
from dtq_core.settings import load
from dtq_core.store import AsyncStore
from dtq_core.tracing import submitting
from dtq_tasks import Task, TaskWithOptions

P = ParamSpec("P")
R = TypeVar("R")


class AsyncClient:
    """Submits tasks and asks after them, on one event loop; calls may overlap.

    What is promised, raised and sent again is that of :class:`~dtq_client.client.Client`.
    """

    def __init__(self, redis_url: str | None = None, **settings: Any) -> None:
        """Prepare a client. Arguments and errors as :class:`~dtq_client.client.Client`."""
        self.settings = load({"redis_url": redis_url, **settings})
        self.store = AsyncStore(self.settings)
        self.requests = Requests(self.settings, self.store.partitions)
        self._waiting = Waiting(self.store)
        self._checked: set[bool] = set()

    async def submit(
        self, task: Task[P, R] | TaskWithOptions[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncHandle[R]:
        """Submit a task; when this returns, it is accepted. As :meth:`Client.submit`."""
        plain, options = unwrap(task)
        submission = self.requests.of_task(task, args, kwargs)
        return await self._send(submission, plain, options)

    async def submit_many(
        self, task: Task[P, R] | TaskWithOptions[P, R], calls: Iterable[Arguments]
    ) -> list[AsyncHandle[R]]:
        """Submit many calls of one handler. As :meth:`Client.submit_many`."""
        plain, options = unwrap(task)
        submissions = self.requests.of_many(task, calls)
        confirmation = await self._ready(options.durability)
        for index, batch in self.requests.batches(submissions):
            for answer in await self._submit(self.store.calls[index], batch, confirmation):
                accepted(answer, "")
        return [AsyncHandle(self, submission.task_id, plain) for submission in submissions]

    async def submit_by_name(
        self,
        name: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> AsyncHandle[Any]:
        """Submit a task whose handler this program lacks. As :meth:`Client.submit_by_name`."""
        made = make_options(options)
        submission = self.requests.by_name(name, args, kwargs or {}, made)
        return await self._send(submission, None, made)

    async def submit_each(
        self, submissions: Sequence[Submission], durability: str | None = None
    ) -> list[Submitted | RedisError]:
        """Submit tasks of any kind, each with its answer. As :meth:`Client.submit_each`."""
        confirmation = await self._ready(durability)
        answers: dict[str, Submitted | RedisError] = {}
        for index, batch in self.requests.batches(submissions):
            try:
                found: Iterable[Submitted | RedisError] = await self._submit(
                    self.store.calls[index], batch, confirmation
                )
            except RedisError as error:
                found = [error] * len(batch)
            answers.update(zip((one.task_id for one in batch), found, strict=True))
        return [answers[submission.task_id] for submission in submissions]

    async def get(self, task_id: str) -> TaskInfo:
        """Return what is known of a task. As :meth:`Client.get`."""
        read = reads.task(self.store.keys_of(task_id), task_id)
        await self._check()
        info = await self.store.read(read)
        if info is None:
            raise TaskNotFoundError(task_id)
        return info

    async def result(
        self, task_id: str, timeout: float | None = None, *, task: Task[..., Any] | None = None
    ) -> Any:
        """Wait for the result of a task. As :meth:`Client.result`."""
        text = result_of(await self.outcome(task_id, timeout))
        if text is None:
            raise ResultTimeoutError(f"task {task_id} had not ended after {timeout} s")
        return codec.decode(text, "result") if task is None else task.decode_result(text)

    async def outcome(self, task_id: str, timeout: float | None = None) -> Outcome:
        """Wait for the end of a task, however it ends. As :meth:`Client.outcome`."""
        patience, retry_s = Patience(timeout), self.settings.retry_timeout
        read = reads.outcome(self.store.keys_of(task_id), task_id)
        await self._check(retry_s=patience.at_most(retry_s))
        while True:
            found = await self.store.read(read, retry_s=patience.at_most(retry_s))
            if found is None:
                raise TaskNotFoundError(task_id)
            left_s = patience.left_s
            if found.info.status.terminal or left_s == 0:
                return found
            if not await self._waiting.ended(task_id, left_s):
                return found

    async def cancel(self, task_id: str, reason: str = "") -> CancelAnswer:
        """Cancel a task. As :meth:`Client.cancel`."""
        call = self.store.calls_of(task_id).cancel([task_id], checked_reason(reason))
        await self._check()
        reach("cancel.before")
        answers = await self.store.run(call)
        reach("cancel.after")
        return cancel_answer(answers[0], task_id)

    async def attempts(self, task_id: str) -> list[Attempt]:
        """Return the ended attempts of a task, oldest first. As :meth:`Client.attempts`."""
        read = reads.attempts(self.store.keys_of(task_id), task_id)
        await self._check()
        found = await self.store.read(read)
        if found is None:
            raise TaskNotFoundError(task_id)
        return found

    def handle(self, task_id: str) -> AsyncHandle[Any]:
        """Return a handle of a task by its id; nothing is sent."""
        self.store.keys_of(task_id)
        return AsyncHandle(self, task_id, None)

    async def close(self) -> None:
        """Close the connections. As :meth:`Client.close`."""
        await self._waiting.close()
        await self.store.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _check(self, *, lay_out: bool = False, retry_s: float | None = None) -> None:
        """Check the server, once for looking, which leaves no mark on it, and once for writing."""
        if lay_out not in self._checked:
            limit = self.settings.retry_timeout if retry_s is None else retry_s
            await self.store.check(lay_out=lay_out, retry_s=limit)
            self._checked |= {False, lay_out}

    async def _ready(self, durability: str | None) -> Confirmation | None:
        """Check the server for a submission, and return how that is confirmed."""
        durability = durability or self.settings.durability
        confirmation = await self.store.confirmation(durability)
        await self._check(lay_out=True)
        return confirmation

    async def _send(
        self, submission: Submission, task: Task[..., R] | None, options: Options
    ) -> AsyncHandle[R]:
        confirmation = await self._ready(options.durability)
        calls = self.store.calls_of(submission.task_id)
        answers = await self._submit(calls, [submission], confirmation)
        answer = accepted(answers[0], submission.idempotency_key)
        return AsyncHandle(self, answer.task_id, task, duplicate=answer.code is Code.DUPLICATE)

    async def _submit(
        self, calls: Calls, batch: Sequence[Submission], confirmation: Confirmation | None
    ) -> list[Submitted]:
        reach("submit.before")
        with submitting(batch) as sent:
            answers = await self.store.run(calls.submit(sent, confirmation))
        reach("submit.after")
        return answers
