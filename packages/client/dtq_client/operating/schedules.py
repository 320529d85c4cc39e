"""Recurring schedules, at run time: list, add, remove, pause, resume, fire by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from dtq_client.queries.walks import scanned
from dtq_core import reads
from dtq_core.audit import operation
from dtq_core.calls import Call
from dtq_core.clock import rfc3339
from dtq_core.cron import (
    CronSchedule,
    Origin,
    check_schedule,
    decode_schedule,
    encode_schedule,
    next_slot,
)
from dtq_core.errors import CorruptDataError, ScheduleExistsError, ScheduleNotFoundError
from dtq_core.firing import submission_of
from dtq_core.limits import check_name
from dtq_core.reads import StoredSchedule
from dtq_core.scripts import Code
from dtq_core.store import Store

_LONGEST_SCOPE = 1_000
"""Characters of what the audit log says that was added."""


class ScheduleInfo(msgspec.Struct, frozen=True):
    """A recurring schedule as readers see it; times are RFC 3339, None where there is none.

    Attributes:
        name: of the schedule.
        task: what it submits.
        cron: when.
        tz: the time zone of that.
        misfire: what becomes of missed slots.
        overlap: what becomes of a slot while an earlier task has not ended.
        origin: ``code`` or ``operator``.
        next_at: its next slot.
        last_at: the last slot that was fired.
        last_id: the task of that.
        paused_at: since when it is paused.
        problem: why it cannot be fired; None where it can.
    """

    name: str
    task: str
    cron: str
    tz: str
    misfire: str
    overlap: str
    origin: str
    next_at: str | None
    last_at: str | None
    last_id: str | None
    paused_at: str | None
    problem: str | None


def list_schedules(store: Store) -> list[ScheduleInfo]:
    """Return all recurring schedules, by name.

    Raises:
        RedisError: if the server cannot say.
    """
    return sorted(map(_info, _stored(store)), key=lambda info: info.name)


def _stored(store: Store) -> Iterator[StoredSchedule]:
    for keys in store.partitions.all:
        for page in scanned(store, partial(reads.scan_schedules, keys)):
            yield from store.read(reads.schedules(keys, page.definitions))


def _info(stored: StoredSchedule) -> ScheduleInfo:
    problem = None
    try:
        schedule = decode_schedule(stored.definition)
    except CorruptDataError as error:
        schedule, problem = CronSchedule(task="", cron="", tz=""), str(error)
    return ScheduleInfo(
        name=stored.name,
        task=schedule.task,
        cron=schedule.cron,
        tz=schedule.tz,
        misfire=schedule.misfire,
        overlap=schedule.overlap,
        origin=schedule.origin,
        next_at=_at(stored.next_ms),
        last_at=_at(stored.last_ms),
        last_id=stored.last_id or None,
        paused_at=_at(stored.paused_ms),
        problem=problem,
    )


def _at(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


def add_schedule(
    store: Store,
    name: str,
    schedule: CronSchedule,
    who: str,
    reason: str = "",
    *,
    replace: bool = False,
) -> bool:
    """Store a recurring schedule; it fires from now on, unless one of its name is paused.

    Args:
        store: of the deployment.
        name: of the schedule.
        schedule: what it is.
        who: who does it, for the audit log.
        reason: why, for the audit log.
        replace: whether another one of this name is replaced, which then never comes back by
            itself, even if a handler declares it.

    Returns:
        Whether that changed anything.

    Raises:
        InputError: for a name, expression, zone, option or reason that is refused.
        ScheduleExistsError: if there is another one of this name, and it is not to be replaced.
        RedisError: if the server cannot do it.
    """
    check_name("schedule name", name)
    check_schedule(schedule)
    store.check(lay_out=True)
    act = operation("cron.add", who, reason, _scope(name, schedule))
    definition, slot = encode_schedule(schedule), _next(store, schedule)
    stored = None if replace else _stored_definition(store, name)
    if stored is not None and stored != definition:
        raise ScheduleExistsError(_said_of(name, stored))
    return (
        store.run(store.calls[_home(store, name)].cron_put(act, name, definition, slot)) is Code.OK
    )


def _scope(name: str, schedule: CronSchedule) -> str:
    """A schedule as the audit log names it, with all that it would submit."""
    options = msgspec.to_builtins(schedule.options)
    words = {
        "task": schedule.task,
        "cron": repr(schedule.cron),
        "tz": schedule.tz,
        "misfire": schedule.misfire,
        "overlap": schedule.overlap,
        **{"queue": schedule.options.queue, **options},
        "args": schedule.payload,
    }
    scope = " ".join([name, *(f"{key}={value}" for key, value in words.items())])
    return scope if len(scope) <= _LONGEST_SCOPE else f"{scope[: _LONGEST_SCOPE - 1]}…"


def _said_of(name: str, stored: bytes) -> str:
    """What there is under a name already."""
    begin = f"there is a schedule of the name {name} already"
    try:
        there = decode_schedule(stored)
    except CorruptDataError:
        return f"{begin}, and it cannot be read"
    made = "declared by a handler" if there.origin is Origin.CODE else "made by an operator"
    return f"{begin}, {made}: {there.task} at {there.cron!r} in {there.tz}"


def remove_schedule(store: Store, name: str, who: str, reason: str = "") -> None:
    """Remove a recurring schedule; tasks that it made stay.

    Arguments as :func:`add_schedule`.

    Raises:
        InputError: for a name or reason that is refused.
        ScheduleNotFoundError: if there is none of this name.
        RedisError: if the server cannot do it.
    """
    act = operation("cron.remove", who, reason, name)
    call = store.calls[_home(store, name)].cron_drop(act, name)
    if store.run(call) is Code.UNKNOWN:
        raise ScheduleNotFoundError(name)


def pause_schedule(store: Store, name: str, who: str, reason: str = "") -> bool:
    """Have a recurring schedule fire no more, until it is resumed. Arguments and errors as above.

    Returns:
        Whether it was not paused before.
    """
    act = operation("cron.pause", who, reason, name)
    return _set_paused(store, name, store.calls[_home(store, name)].cron_pause(act, name, None))


def resume_schedule(store: Store, name: str, who: str, reason: str = "") -> bool:
    """Have a recurring schedule fire again; what it missed is not made up.

    Arguments and errors as above.

    Returns:
        Whether it was paused before.
    """
    act = operation("cron.resume", who, reason, name)
    slot = _next(store, _read(store, name))
    return _set_paused(store, name, store.calls[_home(store, name)].cron_pause(act, name, slot))


def run_schedule(store: Store, name: str, who: str, reason: str = "") -> str:
    """Submit the task of a recurring schedule now, beside its slots. Arguments and errors as above.

    Returns:
        The id of the task.
    """
    act = operation("cron.run", who, reason, name)
    asked = submission_of(store.partitions, store.settings, name, _read(store, name), None)
    (code,) = store.run(store.calls[_home(store, name)].fire(act, name, None, [asked]))
    if code not in {Code.OK, Code.AGAIN}:
        raise CorruptDataError(f"a key of queue {asked.queue} is not dtq's")
    return asked.task_id


def _home(store: Store, name: str) -> int:
    return store.partitions.home_of(check_name("schedule name", name))


def _stored_definition(store: Store, name: str) -> bytes | None:
    (stored,) = store.read(reads.definitions(store.partitions.all[_home(store, name)], [name]))
    return stored


def _read(store: Store, name: str) -> CronSchedule:
    stored = _stored_definition(store, name)
    if stored is None:
        raise ScheduleNotFoundError(name)
    return decode_schedule(stored)


def _next(store: Store, schedule: CronSchedule) -> int:
    slot = next_slot(schedule.cron, schedule.tz, store.read(reads.now_ms()))
    assert slot is not None, "a schedule that never fires is refused"
    return slot


def _set_paused(store: Store, name: str, call: Call[Code]) -> bool:
    code = store.run(call)
    if code is Code.UNKNOWN:
        raise ScheduleNotFoundError(name)
    return code is Code.OK
