"""Recurring tasks: what a schedule is, and at which times it fires. Pure.

Expressions are those of cron (``cronsim``, which follows Debian's, also where clocks are changed):
a job at a fixed time of day fires once a local day, one whose hour is ``*`` or has a step fires for
every step that passes. A slot is the time of one firing, in ms of the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from dtq_core import codec
from dtq_core.errors import CorruptDataError, InvalidOptionError
from dtq_core.limits import check_name
from dtq_core.record import Options

MAX_EXPRESSION_CHARS = 200
MAX_MADE_UP = 100
"""How many missed slots ``misfire="all"`` makes up at most, the newest."""
_WINDOWS = (timedelta(minutes=3), timedelta(hours=2), timedelta(days=2), timedelta(days=60))
"""How far back it is looked for missed slots: never farther than it takes."""
_MOST_STEPS = 100_000


class Misfire(StrEnum):
    """What becomes of slots that were missed, because no scheduler ran."""

    SKIP = "skip"
    """They are gone."""
    ONCE = "once"
    """The last of them is made up."""
    ALL = "all"
    """Each is made up, the newest ``MAX_MADE_UP`` of them."""


class Overlap(StrEnum):
    """What becomes of a slot while the task of an earlier one has not ended."""

    ALLOW = "allow"
    SKIP = "skip"


class Origin(StrEnum):
    """Who made a schedule."""

    CODE = "code"
    """A worker, as its handlers are declared; it is renewed by every worker that starts."""
    OPERATOR = "operator"
    """A person or a program, at run time."""


class CronSchedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recurring task, as it is stored.

    Attributes:
        task: the name of the task.
        cron: when it fires: five fields, or six of which the first is the second.
        tz: the time zone of the expression, by its IANA name.
        payload: its arguments, JSON text of ``[args, kwargs]``.
        options: of its submissions.
        misfire: what becomes of missed slots.
        overlap: what becomes of a slot while an earlier task has not ended.
        origin: who made it.
    """

    task: str
    cron: str
    tz: str = "UTC"
    payload: str = "[[],{}]"
    options: Options = Options()
    misfire: Misfire = Misfire.ONCE
    overlap: Overlap = Overlap.ALLOW
    origin: Origin = Origin.OPERATOR


def check_schedule(schedule: CronSchedule) -> CronSchedule:
    """Check a schedule before it is stored.

    Raises:
        InvalidNameError: for a task name that breaks the rule.
        InvalidOptionError: for an expression that is malformed or never fires, an unknown zone, or
            another option that is none.
    """
    check_name("task name", schedule.task)
    for kind, value in ((Misfire, schedule.misfire), (Overlap, schedule.overlap)):
        if value not in list(kind):
            raise InvalidOptionError(
                f"{kind.__name__.lower()} {value!r} does not exist: use one of {', '.join(kind)}"
            )
    options = schedule.options
    if options.delay or options.idempotency_key or options.durability:
        raise InvalidOptionError("a schedule has no delay, idempotency key or durability")
    if next_slot(schedule.cron, schedule.tz, 0) is None:
        raise InvalidOptionError(f"cron {schedule.cron!r} never fires")
    return schedule


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        InvalidOptionError: if there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, TypeError, LookupError):
        raise InvalidOptionError(
            f"time zone {str(name)[:60]!r} does not exist: use an IANA name, as Europe/Berlin"
        ) from None


def next_slot(cron: str, tz: str, after_ms: int) -> int | None:
    """Return the first slot after a time; None where there is none in fifty years.

    Args:
        cron: the expression.
        tz: its time zone.
        after_ms: epoch milliseconds.

    Raises:
        InvalidOptionError: for an expression or zone that is none.
    """
    return next(_slots(cron, tz, after_ms), None)


def slots_between(
    cron: str, tz: str, first_ms: int, last_ms: int, most: int = MAX_MADE_UP
) -> list[int]:
    """Return the newest slots from a first one, which is known to be one, to a time.

    Of a long absence only the last 60 days are looked at, and of those no more than it takes. A
    first one before that, without any since, is returned alone.

    Args:
        cron: the expression.
        tz: its time zone.
        first_ms: the first slot.
        last_ms: none after this.
        most: how many at most.

    Raises:
        InvalidOptionError: as :func:`next_slot`.
    """
    found: list[int] = []
    for window in _WINDOWS:
        begin = max(first_ms, last_ms - int(window.total_seconds() * 1000))
        slots = takewhile(lambda slot: slot <= last_ms, _slots(cron, tz, begin))
        found = list(islice(slots, _MOST_STEPS))
        if begin == first_ms:
            return [first_ms, *found][-most:]
        if len(found) >= most:
            break
    return found[-most:] or [first_ms]


def _slots(cron: str, tz: str, after_ms: int) -> Iterator[int]:
    """Every slot after a time; strictly increasing, whatever the clocks of the zone do."""
    if not isinstance(cron, str) or not cron.isascii() or len(cron) > MAX_EXPRESSION_CHARS:
        raise InvalidOptionError(
            f"cron {str(cron)[:40]!r} is not an expression of at most {MAX_EXPRESSION_CHARS} "
            "characters"
        )
    begin = datetime.fromtimestamp(after_ms / 1000, UTC).astimezone(zone_of(tz))
    try:
        times = CronSim(cron, begin)
    except CronSimError as error:
        form = "minute hour day month weekday"
        raise InvalidOptionError(f"cron {cron!r}: {error}; use: {form}") from None
    newest = after_ms
    for time in times:
        slot = int(time.timestamp() * 1000)
        if slot > newest:
            newest = slot
            yield slot


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(CronSchedule)


def encode_schedule(schedule: CronSchedule) -> bytes:
    """Return a schedule as it is stored; the same text for the same schedule."""
    return _encoder.encode(schedule)


def decode_schedule(text: bytes) -> CronSchedule:
    """Read a stored schedule, and check it.

    Raises:
        CorruptDataError: if it is none, or one that is refused.
    """
    try:
        return check_schedule(_decoder.decode(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidOptionError) as error:
        raise CorruptDataError(f"not a schedule: {codec.describe(error)}") from None
