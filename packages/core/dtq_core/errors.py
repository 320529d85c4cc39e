"""Every error that dtq raises.

::

    DtqError
    ├── InputError (ValueError)        what the caller gave is refused; nothing was written
    │   ├── InvalidNameError           a queue, task, worker name or key breaks its rule
    │   ├── InvalidOptionError         an option is out of its bounds
    │   ├── EncodingError              a value has no JSON form (NaN, lone surrogate, too deep, …)
    │   ├── TooLargeError              payload or result over its limit
    │   ├── InvalidArgumentsError      arguments do not fit the handler
    │   ├── SettingsError              a setting is wrong or contradicts another
    │   └── IdempotencyConflictError   the key was used before for another request
    ├── RedisError                     the server cannot do it
    │   ├── RedisUnavailableError      unreachable, loading, read-only, too slow: try again
    │   │   ├── RedisBusyError         of these: the server answers, but cannot serve for now
    │   │   ├── RedisUnreachableError  of these: there was no connection, and nothing was sent
    │   │   └── OutcomeUnknownError    of these: it was sent, and tasks may have been accepted
    │   ├── RedisFullError             out of memory, nothing was written
    │   ├── RedisDeniedError           wrong password, or a right is missing
    │   ├── RedisUnfitError            too old, evicting, unable to confirm, or laid out otherwise
    │   └── CorruptDataError           a key holds something that dtq did not put there
    ├── EmbeddedServerError            the private Redis server could not be started
    ├── WorkerStartError               a worker process cannot start, for want of its handlers, say
    ├── TaskNotFoundError (LookupError)  no such task, or its retention is over
    ├── LetterNotFoundError (LookupError)  the task has no dead letter, as it did not fail
    ├── QueueNotFoundError (LookupError)  no queue of this name was ever used
    ├── ScheduleNotFoundError (LookupError)  no recurring schedule has this name
    ├── ApiKeyNotFoundError (LookupError)  no API key has this name
    ├── ScheduleExistsError            a recurring schedule has this name, and is another one
    ├── ResultTimeoutError (TimeoutError)  the task had not ended in the time given
    ├── TaskNotSucceededError          the task ended, and has no result
    │   ├── TaskFailedError            FAILED or DEAD_LETTERED
    │   ├── TaskCancelledError
    │   └── TaskExpiredError
    ├── OperationError                 a guarded operation inside a handler cannot be run
    │   ├── OperationUsageError        called where there is no attempt, or where it would block
    │   ├── OperationBusyError         another run of it is under way in the same attempt
    │   ├── OperationInDoubtError      an earlier run was cut off: its effect may have happened
    │   ├── OperationLostError         the attempt is no longer the task's current one
    │   └── OperationResultError       it was done, but what it returned could not be kept
    └── ResultExpiredError             the task succeeded, its result is no longer kept

Programmer errors (an unknown answer code, say) are assertions, not exceptions of this tree.
"""

from __future__ import annotations


class DtqError(Exception):
    """Base of all errors of dtq."""


class InputError(DtqError, ValueError):
    """What the caller gave is refused; nothing was written."""


class InvalidNameError(InputError):
    """A name or key breaks its rule."""


class InvalidOptionError(InputError):
    """An option is out of its bounds."""


class EncodingError(InputError):
    """A value has no JSON form that reads back as the same value."""


class TooLargeError(InputError):
    """A payload or result is over its limit."""


class InvalidArgumentsError(InputError):
    """The arguments do not fit the handler's parameters."""


class SettingsError(InputError):
    """A setting is wrong or contradicts another."""


class IdempotencyConflictError(InputError):
    """The idempotency key was used before, for another request.

    Attributes:
        task_id: the task that the key belongs to.
    """

    def __init__(self, key: str, task_id: str) -> None:
        super().__init__(
            f"idempotency key {key!r} belongs to task {task_id}, which was submitted with "
            "another name or other arguments; use a new key"
        )
        self.task_id = task_id


class RedisError(DtqError):
    """The server cannot do what was asked."""


class RedisUnavailableError(RedisError):
    """The server is unreachable, loading, read-only or too slow: try again later."""


class RedisBusyError(RedisUnavailableError):
    """The server answers that it cannot serve for now: it loads, runs a script, or is read-only."""


class RedisUnreachableError(RedisUnavailableError):
    """There was no connection to the server, and nothing was sent."""


class OutcomeUnknownError(RedisUnavailableError):
    """Tasks were submitted, and whether they are accepted, as durably as asked, is not known.

    They may be there and run. Saying the same again is safe under the same idempotency key; without
    one it may be a second task.

    Attributes:
        task_ids: the tasks, under which they are found if they are there.
    """

    def __init__(self, task_ids: tuple[str, ...], reason: str) -> None:
        first, more = task_ids[0], len(task_ids) - 1
        named = f"task {first}" if not more else f"tasks {first} and {more} more"
        super().__init__(f"the outcome is unknown: {named} may have been accepted: {reason}")
        self.task_ids = task_ids


class RedisFullError(RedisError):
    """The server is out of memory; nothing was written."""


class RedisDeniedError(RedisError):
    """The password is wrong, or the user lacks a right."""


class RedisUnfitError(RedisError):
    """The server is too old, evicts keys, cannot confirm, or is laid out for other settings."""


class CorruptDataError(RedisError):
    """A key holds something that dtq did not put there."""


class EmbeddedServerError(DtqError):
    """The private Redis server could not be started."""


class WorkerStartError(DtqError):
    """A worker process cannot start, and never will: its handlers cannot be imported, say."""


class TaskNotFoundError(DtqError, LookupError):
    """No such task, or its retention is over."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no task {task_id}: never submitted here, or its retention is over")
        self.task_id = task_id


class LetterNotFoundError(DtqError, LookupError):
    """The task has no dead letter, as it did not fail."""

    def __init__(self, task_id: str, status: str) -> None:
        super().__init__(f"task {task_id} is no dead letter: it is {status}")
        self.task_id = task_id
        self.status = status


class QueueNotFoundError(DtqError, LookupError):
    """No queue of this name was ever used."""

    def __init__(self, queue: str) -> None:
        super().__init__(f"no queue of the name {queue} was ever used here")
        self.queue = queue


class ScheduleNotFoundError(DtqError, LookupError):
    """No recurring schedule has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule of the name {name}")
        self.name = name


class ApiKeyNotFoundError(DtqError, LookupError):
    """No API key has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no API key of the name {name}")
        self.name = name


class ScheduleExistsError(DtqError):
    """A recurring schedule has this name, and is another one; nothing was written."""


class ResultTimeoutError(DtqError, TimeoutError):
    """The task had not ended in the time given."""


class TaskNotSucceededError(DtqError):
    """The task ended, and has no result.

    Attributes:
        task_id: the task.
        status: its terminal status.
        reason: why, as recorded.
    """

    def __init__(self, task_id: str, status: str, reason: str) -> None:
        super().__init__(f"task {task_id} is {status}" + (f": {reason}" if reason else ""))
        self.task_id = task_id
        self.status = status
        self.reason = reason


class TaskFailedError(TaskNotSucceededError):
    """The task is FAILED or DEAD_LETTERED."""


class TaskCancelledError(TaskNotSucceededError):
    """The task was cancelled."""


class TaskExpiredError(TaskNotSucceededError):
    """The task's TTL ended before it was started."""


class ResultExpiredError(DtqError):
    """The task succeeded, but its result is no longer kept."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"task {task_id} succeeded, but its result is no longer kept")
        self.task_id = task_id


class OperationError(DtqError):
    """A guarded operation inside a handler cannot be run.

    Attributes:
        name: of the operation.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"operation {name}: {message}")
        self.name = name


class OperationUsageError(OperationError):
    """Called outside a handler, or where it would block the loop or wait for itself."""


class OperationBusyError(OperationError):
    """Another run of it is under way, and this one was not to wait."""


class OperationInDoubtError(OperationError):
    """An earlier run was cut off: nobody knows whether its effect has happened.

    Attributes:
        token: the token that it gave to the outside, to ask there.
    """

    def __init__(self, name: str, token: str) -> None:
        super().__init__(
            name,
            "an earlier run was cut off, and its effect may have happened; "
            f"find out with its token {token}",
        )
        self.token = token


class OperationLostError(OperationError):
    """The attempt is no longer the current one of its task: another one may run already."""


class OperationResultError(OperationError):
    """It was done, and is not run again; but what it returned could not be kept."""
