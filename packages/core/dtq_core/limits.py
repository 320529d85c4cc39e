"""Every bound of dtq, with its unit last in its name, and the checks of them.

Client, API, CLI and scheduler all check here, before anything is written.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum

from dtq_core.errors import InvalidNameError, InvalidOptionError, TooLargeError

MAX_PAYLOAD_BYTES = 1_048_576
MAX_RESULT_BYTES = 1_048_576
MAX_ERROR_BYTES = 16_384
MAX_DEPTH = 100
"""Levels of nesting in a payload or result."""

MAX_BATCH_TASKS = 500
"""Tasks in one script call, so that Redis never stalls on one."""
MAX_CLAIM_BYTES = 4_194_304
"""Payload in one claim beyond its first task."""

MAX_API_KEYS = 1_000
"""API keys, the revoked ones included: the API holds them all in memory."""

MAX_DURATION_S = 10 * 365 * 86_400
MAX_DURABILITY_TIMEOUT_S = 3_600
MAX_ATTEMPTS = 1_000_000
MAX_PARTITIONS = 4_096
MAX_CONCURRENCY = 10_000
MAX_PROCESSES = 1_024
MAX_WAKE_TOKENS = 128

MIN_VISIBILITY_S = 0.5
RENEWALS_PER_VISIBILITY = 3
"""A lease is renewed this often within one visibility timeout."""

assert RENEWALS_PER_VISIBILITY > 2, "one lost renewal must not lose a lease"
assert MAX_CLAIM_BYTES >= MAX_PAYLOAD_BYTES

NAME_PATTERN = r"[A-Za-z0-9_.-]{1,100}"
_NAME = re.compile(NAME_PATTERN)
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_TASK_ID = re.compile(r"[0-9a-f]{32}")


class Band(StrEnum):
    """Priority of a task inside its queue."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Durability(StrEnum):
    """How far a submission must have got before it counts as accepted."""

    MEMORY = "memory"
    """The server has it in memory, and does with it what its own configuration says."""
    REPLICA = "replica"
    """At least one replica has it in memory as well."""
    DISK = "disk"
    """The server's disk has it: its append-only file is synced."""


def _quoted(value: object) -> str:
    """Return a value as one short printable line, whatever it is."""
    try:
        text = ascii(value)
    except Exception:  # an int too long to print, a __repr__ that raises
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def is_name(text: str) -> bool:
    """Tell whether a text may be the name of a queue, task, worker or schedule."""
    return _NAME.fullmatch(text) is not None


def check_name(kind: str, name: object) -> str:
    """Check a queue, task or worker name.

    Args:
        kind: what is named, for the message ("queue name").
        name: the value given.

    Returns:
        The name.

    Raises:
        InvalidNameError: unless it is 1 to 100 of ``A-Z a-z 0-9 _ . -``.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise InvalidNameError(
        f"{kind} {_quoted(name)} is not allowed: use 1 to 100 of A-Z a-z 0-9 _ . -"
    )


def check_idempotency_key(key: object) -> str:
    """Check an idempotency key.

    Raises:
        InvalidNameError: unless it is 1 to 255 visible ASCII characters.
    """
    if isinstance(key, str) and _KEY.fullmatch(key):
        return key
    raise InvalidNameError(
        f"idempotency key {_quoted(key)} is not allowed: use 1 to 255 visible ASCII characters"
    )


def check_task_id(task_id: object) -> str:
    """Check the form of a task id.

    Raises:
        InvalidNameError: unless it is 32 lower-case hexadecimal digits.
    """
    if isinstance(task_id, str) and _TASK_ID.fullmatch(task_id):
        return task_id
    raise InvalidNameError(f"{_quoted(task_id)} is not a task id: 32 hexadecimal digits")


def check_durability(durability: object) -> Durability:
    """Check a level of durability.

    Raises:
        InvalidOptionError: if there is no such level.
    """
    try:
        return Durability(durability)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidOptionError(
            f"durability {_quoted(durability)} does not exist: use one of {', '.join(Durability)}"
        ) from None


def check_band(band: object) -> Band:
    """Check a priority band.

    Raises:
        InvalidOptionError: if there is no such band.
    """
    try:
        return Band(band)  # type: ignore[arg-type]
    except ValueError:
        raise InvalidOptionError(
            f"band {_quoted(band)} does not exist: use one of {', '.join(Band)}"
        ) from None


def check_duration_ms(kind: str, seconds: object) -> int:
    """Check a delay, TTL or time-out given in seconds.

    Args:
        kind: what it is, for the message ("delay").
        seconds: the value given, 0 to ten years.

    Returns:
        Whole milliseconds, rounded up so that a positive duration stays positive.

    Raises:
        InvalidOptionError: if it is no finite number in that range.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidOptionError(f"{kind} {_quoted(seconds)} is not a number of seconds")
    if not 0 <= seconds <= MAX_DURATION_S:  # refuses NaN and infinity as well
        raise InvalidOptionError(
            f"{kind} {_quoted(seconds)} is out of range: use 0 to {MAX_DURATION_S} seconds"
        )
    return math.ceil(seconds * 1000)


def check_count(kind: str, value: object, maximum: int, minimum: int = 1) -> int:
    """Check a whole number against its bounds.

    Raises:
        InvalidOptionError: if it is no whole number from ``minimum`` to ``maximum``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InvalidOptionError(
            f"{kind} {_quoted(value)} is out of range: use a whole number "
            f"from {minimum} to {maximum}"
        )
    return value


def check_size(kind: str, size_bytes: int, maximum_bytes: int) -> None:
    """Check the size of an encoded payload or result.

    Raises:
        TooLargeError: if it is over the maximum.
    """
    if size_bytes > maximum_bytes:
        raise TooLargeError(
            f"{kind} is {size_bytes:,} bytes, over the limit of {maximum_bytes:,}: "
            "store the data elsewhere and pass a reference"
        )
