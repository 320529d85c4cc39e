"""The blocking client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from dtq_client.handle import Handle
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
from dtq_core.cancelling import cancel
from dtq_core.clock import mono_s
from dtq_core.errors import ResultTimeoutError, TaskNotFoundError
from dtq_core.record import Attempt, Submission, TaskInfo
from dtq_core.scripts import Code
from dtq_core.settings import load
from dtq_core.store import AsyncStore, Store
from dtq_tasks import Task, TaskWithOptions

P = ParamSpec("P")
R = TypeVar("R")


class Client:
    """Submits tasks and asks after them; may be shared by threads.

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
        self._requests = Requests(self.settings, self.store.partitions)
        self._checked: set[bool] = set()
        self._lock = threading.Lock()
        self._waiter: _Waiter | None = None

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
            RedisError: if the server cannot take it. When it went away in the middle, the task may
                have been accepted all the same.
        """
        return self._send(self._requests.of_task(task, args, kwargs), unwrap(task)[0])

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
            RedisError: if the server cannot take them; earlier batches may have been accepted.
        """
        plain, _ = unwrap(task)
        submissions = self._requests.of_many(task, calls)
        self._check(lay_out=True)
        for index, batch in self._requests.batches(submissions):
            for answer in self.store.run(self.store.calls[index].submit(batch)):
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
        return self._send(self._requests.by_name(name, args, kwargs or {}, made), None)

    def get(self, task_id: str) -> TaskInfo:
        """Return what is known of a task.

        Raises:
            TaskNotFoundError: if there is no such task.
            InvalidNameError: if it is no id at all.
        """
        self._check()
        info = self.store.read(reads.task(self.store.keys_of(task_id), task_id))
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
        """
        self._check()
        end = None if timeout is None else mono_s() + timeout
        read = reads.task_result(self.store.keys_of(task_id), task_id)
        while True:
            found = result_of(task_id, self.store.read(read))
            if found is not None:
                return codec.decode(found, "result") if task is None else task.decode_result(found)
            left = None if end is None else max(0.0, end - mono_s())
            if left == 0 or not self._wait(task_id, left):
                raise ResultTimeoutError(f"task {task_id} had not ended after {timeout} s")

    def cancel(self, task_id: str, reason: str = "") -> CancelAnswer:
        """Cancel a task: at once where it waits, by asking its worker where it runs.

        Args:
            task_id: the task.
            reason: kept with it; "cancelled" unless given.
        """
        self._check()
        call = self.store.calls_of(task_id).cancel([task_id], checked_reason(reason))
        return cancel_answer(self.store.run(call)[0], task_id)

    def attempts(self, task_id: str) -> list[Attempt]:
        """Return the ended attempts of a task, oldest first. Errors as :meth:`get`."""
        self._check()
        found = self.store.read(reads.attempts(self.store.keys_of(task_id), task_id))
        if found is None:
            raise TaskNotFoundError(task_id)
        return found

    def handle(self, task_id: str) -> Handle[Any]:
        """Return a handle of a task by its id; nothing is sent."""
        self.store.keys_of(task_id)
        return Handle(self, task_id, None)

    def close(self) -> None:
        """Close the connections."""
        if self._waiter is not None:
            self._waiter.close()
            self._waiter = None
        self.store.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self, *, lay_out: bool = False) -> None:
        """Check the server, once for looking, which leaves no mark on it, and once for writing."""
        if lay_out not in self._checked:
            self.store.check(lay_out=lay_out)
            self._checked |= {False, lay_out}

    def _send(self, submission: Submission, task: Task[..., R] | None) -> Handle[R]:
        self._check(lay_out=True)
        call = self.store.calls_of(submission.task_id).submit([submission])
        answer = accepted(self.store.run(call)[0], submission.idempotency_key)
        return Handle(self, answer.task_id, task, duplicate=answer.code is Code.DUPLICATE)

    def _wait(self, task_id: str, timeout: float | None) -> bool:
        with self._lock:
            if self._waiter is None:
                self._waiter = _Waiter(self.store)
            waiter = self._waiter
        return waiter.ended(task_id, timeout)


class _Waiter:
    """Waiting, from threads: an event loop in a thread of its own, started by the first wait."""

    def __init__(self, store: Store) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = AsyncStore(store.settings, store.url)
        self._waiting = Waiting(self._store)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="dtq-waiting", daemon=True
        )
        self._thread.start()

    def ended(self, task_id: str, timeout_s: float | None) -> bool:
        """Wait until a task has ended or is gone; False when the time was over first."""
        work = self._waiting.ended(task_id, timeout_s)
        ended = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return ended.result()
        except KeyboardInterrupt:  # nobody waits any more
            ended.cancel()
            raise

    def close(self) -> None:
        """End the thread, its connections and whoever still waits."""

        async def close() -> None:
            await self._waiting.close()
            me = asyncio.current_task()
            await cancel(*(task for task in asyncio.all_tasks() if task is not me))
            await self._store.close()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
