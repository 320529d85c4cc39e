"""Which failures are worth another attempt."""

from __future__ import annotations

from dtq_core.errors import InvalidOptionError
from dtq_core.outcome import Failed, describe_error
from dtq_tasks.signals import GiveUp, Retry

ErrorTypes = type[BaseException] | tuple[type[BaseException], ...]


class FailureRules:
    """What one task says about its failures."""

    def __init__(self, retry_on: ErrorTypes, give_up_on: ErrorTypes) -> None:
        """Take the rules.

        Args:
            retry_on: errors after which another attempt may help.
            give_up_on: exceptions to that.

        Raises:
            InvalidOptionError: if one is neither an exception class nor a tuple of them.
        """
        self._retry_on = _checked("retry_on", retry_on)
        self._give_up_on = _checked("give_up_on", give_up_on)

    def classify(self, error: BaseException) -> Failed:
        """Return the outcome of a handler that raised."""
        cause = _only_cause(error)
        if isinstance(cause, Retry):
            return Failed(describe_error(error), retry=True, after_s=cause.after)
        retry = isinstance(cause, self._retry_on) and not isinstance(
            cause, (GiveUp, *self._give_up_on)
        )
        return Failed(describe_error(error), retry)


def _checked(name: str, value: ErrorTypes) -> tuple[type[BaseException], ...]:
    classes = value if isinstance(value, tuple) else (value,)
    for item in classes:
        if not (isinstance(item, type) and issubclass(item, BaseException)):
            raise InvalidOptionError(
                f"{name} {item!r} is no exception class: use one, or a tuple of them"
            )
    return classes


def _only_cause(error: BaseException) -> BaseException:
    """Look into groups of one: a task group wraps even a single error, a ``Retry`` among them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
