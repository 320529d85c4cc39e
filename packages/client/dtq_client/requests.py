"""What every client does without a server: check and encode what goes out, read what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from reprlib import repr as shortened
from typing import Any, TypeVar

from dtq_core import codec
from dtq_core.calls import Ended, Submitted, batches
from dtq_core.errors import (
    CorruptDataError,
    EncodingError,
    IdempotencyConflictError,
    InputError,
    InvalidArgumentsError,
    InvalidOptionError,
    ResultExpiredError,
    TaskCancelledError,
    TaskExpiredError,
    TaskFailedError,
)
from dtq_core.keyspace import Partitions
from dtq_core.limits import MAX_ERROR_BYTES, check_name, check_size
from dtq_core.reads import Outcome
from dtq_core.record import BY_CLIENT, KeyUse, Options, Submission, SubmissionForm
from dtq_core.scripts import Code
from dtq_core.settings import Settings
from dtq_core.states import Status
from dtq_tasks import Task, TaskWithOptions

R = TypeVar("R")
AnyTask = Task[..., R] | TaskWithOptions[..., R]
Arguments = Sequence[Any] | Mapping[str, Any]


_SHARED_FORMS = 256
"""So many kinds of tasks, by name and options, are checked and encoded once."""


class CancelAnswer(StrEnum):
    """What a cancel found."""

    CANCELLED = "cancelled"
    """It will not run: it was waiting, or has been cancelled before."""
    REQUESTED = "requested"
    """It is running; its worker has been asked to stop."""
    ENDED = "ended"
    """It had ended already, otherwise."""
    UNKNOWN = "unknown"
    """There is no such task."""


_CANCEL_ANSWERS = {
    Code.OK: CancelAnswer.CANCELLED,
    Code.AGAIN: CancelAnswer.CANCELLED,
    Code.REQUESTED: CancelAnswer.REQUESTED,
    Code.ENDED: CancelAnswer.ENDED,
    Code.UNKNOWN: CancelAnswer.UNKNOWN,
}


class Requests:
    """Builds submissions for one deployment."""

    def __init__(self, settings: Settings, partitions: Partitions) -> None:
        """Take the settings of this process and the partitions to choose from."""
        self._settings = settings
        self._partitions = partitions
        self._shared_form = lru_cache(_SHARED_FORMS)(partial(SubmissionForm, settings=settings))

    def of_task(
        self, task: AnyTask[R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Submission:
        """Build the submission of one call of a handler.

        Raises:
            InputError: if the arguments do not fit the handler or cannot be encoded.
        """
        plain, options = unwrap(task)
        return self._submission(self._form(plain.name, options), plain.encode(args, kwargs))

    def of_many(self, task: AnyTask[R], calls: Iterable[Arguments]) -> list[Submission]:
        """Build the submissions of many calls; all are checked before any is sent.

        Raises:
            InputError: as :meth:`of_task`, naming the call, counted from 0; and for an idempotency
                key, which would make all one.
        """
        plain, options = unwrap(task)
        if options.idempotency_key is not None:
            raise InvalidOptionError("submit_many: one idempotency key cannot serve many tasks")
        if not isinstance(calls, Iterable):
            raise InvalidArgumentsError(f"submit_many takes calls, not {shortened(calls)}")
        form = self._form(plain.name, options)
        submissions = []
        for index, arguments in enumerate(calls):
            try:
                payload = plain.encode(*_split(arguments))
                submissions.append(self._submission(form, payload))
            except InputError as error:
                raise type(error)(f"call {index}: {error}") from None
        return submissions

    def by_name(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        key_use: KeyUse = BY_CLIENT,
    ) -> Submission:
        """Build a submission for a handler that this program does not have.

        Raises:
            InputError: for a bad name, or arguments that cannot be encoded.
        """
        _check_containers(args, kwargs)
        try:
            payload = codec.encode([list(args), dict(kwargs)], "the payload")
        except EncodingError:
            _name_culprit(args, kwargs)
            raise
        return self._submission(self._form(name, options, key_use), payload)

    def batches(
        self, submissions: Sequence[Submission]
    ) -> Iterator[tuple[int, Sequence[Submission]]]:
        """Cut submissions into script calls: for each its partition and its tasks."""
        groups: dict[int, list[Submission]] = {}
        for submission in submissions:
            groups.setdefault(self._partitions.of(submission.task_id).index, []).append(submission)
        for index, group in groups.items():
            for batch in batches(group):
                yield index, batch

    def _form(self, name: str, options: Options, key_use: KeyUse = BY_CLIENT) -> SubmissionForm:
        if options.idempotency_key is not None or type(options) is not Options:
            # A key belongs to one task; and what is more than options may hold its arguments.
            return SubmissionForm(name, options, self._settings, key_use=key_use)
        check_name("task name", name)  # first: what is no name need not be hashable
        return self._shared_form(name, options)

    def _submission(self, form: SubmissionForm, payload: bytes) -> Submission:
        return form.submission(self._partitions.new_id(form.idempotency_key), payload)


def unwrap(task: AnyTask[R]) -> tuple[Task[..., R], Options]:
    """Return a handler and the options to submit it with.

    Raises:
        InvalidArgumentsError: if it is no handler.
    """
    if isinstance(task, TaskWithOptions):
        return task.task, task.options
    if isinstance(task, Task):
        return task, task.defaults
    raise InvalidArgumentsError(
        f"{shortened(getattr(task, '__name__', task))} is not a task: decorate the function with "
        "@task, or use submit_by_name"
    )


def _check_containers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    if not isinstance(args, tuple | list):
        raise InvalidArgumentsError(f"args {shortened(args)} is no tuple or list of arguments")
    if not isinstance(kwargs, Mapping):
        raise InvalidArgumentsError(f"kwargs {shortened(kwargs)} is no mapping of arguments")
    for name in kwargs:
        if not isinstance(name, str):
            raise InvalidArgumentsError(f"kwargs {shortened(name)} is no name of an argument")


def _name_culprit(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Encode arguments one by one, so that the error names the one that has no JSON form."""
    for index, value in enumerate(args):
        codec.encode(value, f"argument {index}")
    for key, value in kwargs.items():
        codec.encode(value, f"argument {key!r}")


def make_options(values: Mapping[str, Any]) -> Options:
    """Return options from fields by name.

    Raises:
        InvalidOptionError: for a name that is no option, or a value out of bounds.
    """
    for name in values:
        if name not in Options.__struct_fields__:
            known = ", ".join(Options.__struct_fields__)
            raise InvalidOptionError(f"there is no option {name!r}: use {known}")
    return Options(**values)


def _split(arguments: Arguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(arguments, Mapping):
        return (), dict(arguments)
    if isinstance(arguments, tuple | list):
        return tuple(arguments), {}
    raise InvalidArgumentsError(
        "submit_many takes, for each task, a tuple of its arguments or a mapping of them by name"
    )


def checked_reason(reason: str) -> str:
    """Return the reason of a cancel, "cancelled" where none is given.

    Raises:
        InputError: if it is not text, or too long to be kept.
    """
    if not isinstance(reason, str):
        raise InvalidOptionError(f"reason {shortened(reason)} is not text")
    check_size("the reason", len(codec.encode(reason, "the reason")), MAX_ERROR_BYTES)
    return reason or "cancelled"


def accepted(answer: Submitted, key: str) -> Submitted:
    """Return an answer that means a task is there.

    Raises:
        IdempotencyConflictError: if the key belongs to another request.
        CorruptDataError: if a key of the task is not ours.
    """
    if answer.code is Code.CONFLICT:
        raise IdempotencyConflictError(key, answer.task_id)
    if answer.code is Code.CORRUPT:
        raise CorruptDataError(f"a key of task {answer.task_id} or of its queue is not dtq's")
    return answer


def cancel_answer(answer: Ended, task_id: str) -> CancelAnswer:
    """Return what a cancel found.

    Raises:
        CorruptDataError: if a key of the task is not ours.
    """
    if answer.code is Code.CORRUPT:
        raise CorruptDataError(f"the record of task {task_id} is not dtq's")
    return _CANCEL_ANSWERS[answer.code]


def result_of(found: Outcome) -> bytes | None:
    """Return a result as JSON text; None while the task has not ended.

    Raises:
        TaskNotSucceededError: if it ended otherwise.
        ResultExpiredError: if its result is no longer kept.
    """
    info = found.info
    task_id = info.id
    reason = info.error or ""
    match info.status:
        case Status.SUCCEEDED:
            if found.result is None:
                raise ResultExpiredError(task_id)
            return found.result
        case Status.FAILED | Status.DEAD_LETTERED:
            raise TaskFailedError(task_id, info.status, reason)
        case Status.CANCELLED:
            raise TaskCancelledError(task_id, info.status, reason)
        case Status.EXPIRED:
            raise TaskExpiredError(task_id, info.status, reason)
        case _:
            return None
