"""What a handler did: plain values, made by the executor, decided on by :mod:`dtq_core.decide`."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

import msgspec

from dtq_core.limits import MAX_ERROR_BYTES

_REASON_CHARS = 200


class ErrorInfo(msgspec.Struct, frozen=True):
    """An exception as it is stored: bounded, printable, and free of the exception itself.

    Attributes:
        type: name of its class.
        message: its text.
        traceback: where it came from; empty where there is nothing to see.
        traceparent: the context of the span of the attempt, where it had one.
    """

    type: str
    message: str
    traceback: str = ""
    traceparent: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def reason(self) -> str:
        """One short, printable line for lists and events."""
        line = f"{self.type}: {self.message}" if self.message else self.type
        line = " ".join(line.split())[: _REASON_CHARS + 1]
        line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
        return line if len(line) <= _REASON_CHARS else line[: _REASON_CHARS - 1] + "…"


def describe_error(error: BaseException) -> ErrorInfo:
    """Describe an exception, whatever its ``__str__``, its text or its cause do.

    The whole is at most ``MAX_ERROR_BYTES`` long, two thirds of it traceback.
    """
    return ErrorInfo(
        _bounded(type(error).__name__, 100),
        _bounded(_message(error), MAX_ERROR_BYTES // 3),
        _bounded(_traceback(error), MAX_ERROR_BYTES * 2 // 3 - 100, keep_end=True),
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # whatever a foreign __str__ raises
        return "(its message cannot be printed)"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error, limit=-20))
    except BaseException:  # a cause chain or a repr that cannot be walked or printed
        try:
            return "".join(traceback.format_tb(error.__traceback__, limit=-20))
        except BaseException:
            return ""


def _bounded(text: str, max_bytes: int, *, keep_end: bool = False) -> str:
    """Cut to a size in UTF-8, with lone surrogates and NUL made visible."""
    text = text[-max_bytes:] if keep_end else text[:max_bytes]
    raw = text.encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")
    if len(raw) > max_bytes:
        raw = raw[-max_bytes:] if keep_end else raw[:max_bytes]
    return raw.decode("utf-8", "ignore")


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; ``result`` is its result as JSON text."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed.

    Attributes:
        error: why.
        retry: whether another attempt may help.
        after_s: seconds to wait, where the handler said so itself.
    """

    error: ErrorInfo
    retry: bool = True
    after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The handler stopped because cancelling was asked for."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnknownTask:
    """No handler of this name here; another worker may have one (a rolling deploy)."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The worker stops; the task was not run to its end and shall be run elsewhere."""

    reason: str


Outcome = Succeeded | Failed | Cancelled | UnknownTask | GivenBack
