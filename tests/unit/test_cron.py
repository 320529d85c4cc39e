"""When recurring tasks fire: also on the days on which clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dtq_core.cron import (
    MAX_MADE_UP,
    CronSchedule,
    Misfire,
    check_schedule,
    decode_schedule,
    encode_schedule,
    next_slot,
    slots_between,
)
from dtq_core.errors import CorruptDataError, InvalidArgumentsError, InvalidOptionError
from dtq_core.record import Options
from dtq_tasks import Registry, TaskDecorator

DAY_MS = 86_400_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def fired(cron: str, tz: str, after: str, count: int) -> list[str]:
    """The next times, as the clock on the wall shows them there."""
    zone, at, found = ZoneInfo(tz), ms(after), []
    for _ in range(count):
        slot = next_slot(cron, tz, at)
        assert slot is not None
        assert slot > at
        at = slot
        found.append(datetime.fromtimestamp(at / 1000, zone).strftime("%m-%d %H:%M %z"))
    return found


CLOCK_CHANGES = [
    # A fixed time that a day does not have comes when the clock has jumped; one that it has twice
    # comes once.
    ("30 2 * * *", "Europe/Paris", "2026-03-28T12:00Z", "03-29 03:00 +0200, 03-30 02:30 +0200"),
    ("30 2 * * *", "Europe/Paris", "2026-10-24T12:00Z", "10-25 02:30 +0200, 10-26 02:30 +0100"),
    (
        "50 3 * * *",
        "Pacific/Chatham",
        "2026-04-04T00:00Z",
        "04-05 03:50 +1245, 04-06 03:50 +1245",
    ),
    (
        "50 3 * * *",
        "Pacific/Chatham",
        "2026-09-26T00:00Z",
        "09-27 03:50 +1345, 09-28 03:50 +1345",
    ),
    (
        "0 23 * * *",
        "Antarctica/Troll",
        "2026-03-28T00:00Z",
        "03-28 23:00 +0000, 03-29 23:00 +0200",
    ),
    (
        "30 1 * * *",
        "Antarctica/Troll",
        "2026-03-28T12:00Z",
        "03-29 03:00 +0200, 03-30 01:30 +0200",
    ),
    (
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T00:00Z",
        "10-04 02:30 +1100, 10-05 02:15 +1100",
    ),
    (
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T00:00Z",
        "04-05 01:45 +1100, 04-06 01:45 +1030",
    ),
    (
        "0 0 * * *",
        "America/Santiago",
        "2026-09-05T12:00Z",
        "09-06 01:00 -0300, 09-07 00:00 -0300",
    ),
    # What recurs in every hour comes for every step that passes.
    (
        "*/20 * * * *",
        "Europe/Paris",
        "2026-03-29T00:30Z",
        "03-29 01:40 +0100, 03-29 03:00 +0200",
    ),
    (
        "*/20 * * * *",
        "Europe/Paris",
        "2026-10-25T00:35Z",
        "10-25 02:40 +0200, 10-25 02:00 +0100",
    ),
    ("0 * * * *", "US/Pacific", "2026-11-01T07:30Z", "11-01 01:00 -0700, 11-01 01:00 -0800"),
]


@pytest.mark.parametrize(("cron", "tz", "after", "wanted"), CLOCK_CHANGES)
def test_j1_times_over_a_change_of_the_clock(cron: str, tz: str, after: str, wanted: str) -> None:
    assert fired(cron, tz, after, 2) == wanted.split(", ")


@pytest.mark.parametrize(("cron", "tz"), sorted({(cron, tz) for cron, tz, *_ in CLOCK_CHANGES}))
def test_j1_a_fixed_time_fires_once_a_local_day_all_year_and_times_only_grow(
    cron: str, tz: str
) -> None:
    at, end, zone = ms("2026-01-01T00:00Z"), ms("2027-01-01T00:00Z"), ZoneInfo(tz)
    days: list[str] = []
    while at < end:
        slot = next_slot(cron, tz, at)
        assert slot is not None
        assert slot > at
        at = slot
        days.append(datetime.fromtimestamp(at / 1000, zone).strftime("%j"))
    if "*" not in cron.split()[:2] and "/" not in cron:
        assert len(days) == len(set(days)) or days[-1] == days[0]
        assert len(days) in {365, 366}


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "cron",
    [
        *("0 0 30 2 *", "0 0 31 4 *", "* * * * * * *", "@reboot", "@daily", "", " ", "61 * * * *"),
        *("*/0 * * * *", "5-1 * * * *", "x" * 10_000, "* " * 5_000, "é * * * *", "\x00", "0 0 * *"),
        "* * */20 * 1L",
    ],
)
def test_j4_what_never_fires_or_is_no_expression_is_refused_soon(cron: str) -> None:
    with pytest.raises(InvalidOptionError):
        check_schedule(CronSchedule(task="t", cron=cron))
    with pytest.raises(InvalidOptionError):
        TaskDecorator(Registry())(cron=cron)(lambda_task)


async def lambda_task() -> None:
    pass


def test_j4_a_rare_date_is_taken() -> None:
    check_schedule(CronSchedule(task="t", cron="0 0 29 2 *"))
    slot = next_slot("0 0 29 2 *", "UTC", ms("2026-01-01T00:00Z"))
    assert slot == ms("2028-02-29T00:00Z")


@pytest.mark.parametrize(
    "tz", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "a" * 999, "\0"]
)
def test_j1_an_unknown_zone_is_refused(tz: str) -> None:
    with pytest.raises(InvalidOptionError, match="time zone"):
        check_schedule(CronSchedule(task="t", cron="* * * * *", tz=tz))


def test_other_options_that_are_none_are_refused() -> None:
    for changes in ({"misfire": "never"}, {"overlap": "maybe"}):
        with pytest.raises(InvalidOptionError, match="does not exist"):
            check_schedule(CronSchedule(task="t", cron="* * * * *", **changes))  # type: ignore[arg-type]
    for options in (Options(delay=1), Options(idempotency_key="k"), Options(durability="disk")):
        with pytest.raises(InvalidOptionError, match="has no delay"):
            check_schedule(CronSchedule(task="t", cron="* * * * *", options=options))


def test_a_task_that_needs_arguments_cannot_recur_by_itself() -> None:
    async def greet(name: str) -> None:
        pass

    with pytest.raises(InvalidArgumentsError, match="name") as caught:
        TaskDecorator(Registry())(cron="* * * * *")(greet)
    assert "greet" in str(caught.value)


def test_missed_slots_are_the_newest_and_no_more_than_a_bound() -> None:
    first, minute = ms("2026-01-01T00:00Z"), 60_000
    assert slots_between("* * * * *", "UTC", first, first) == [first]
    assert slots_between("* * * * *", "UTC", first, first + 3 * minute) == [
        first + n * minute for n in range(4)
    ]
    year = slots_between("* * * * *", "UTC", first, first + 365 * DAY_MS)
    assert len(year) == MAX_MADE_UP
    assert year[-1] == first + 365 * DAY_MS


@pytest.mark.timeout(10)
def test_a_schedule_with_seconds_that_was_away_for_a_year_is_looked_at_soon() -> None:
    first = ms("2026-01-01T00:00Z")
    found = slots_between("* * * * * *", "UTC", first, first + 365 * DAY_MS)
    assert found[-1] == first + 365 * DAY_MS


def test_a_schedule_is_stored_and_read_as_it_is() -> None:
    made = CronSchedule(
        task="t", cron="0 4 * * *", tz="Asia/Kolkata", misfire=Misfire.ALL, options=Options(ttl=5)
    )
    assert decode_schedule(encode_schedule(made)) == made


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"task":"t","cron":"0 0 30 2 *"}', b"\xff"])
def test_j4_a_stored_schedule_that_is_none_is_told_apart(text: bytes) -> None:
    with pytest.raises(CorruptDataError, match="not a schedule"):
        decode_schedule(text)


def test_naive_and_aware_times_do_not_mix_here() -> None:
    """Slots are epoch milliseconds; the zone of this process plays no part."""
    slot = next_slot("0 12 * * *", "Asia/Kolkata", ms("2026-06-01T00:00Z"))
    assert slot is not None
    at = datetime.fromtimestamp(slot / 1000, UTC)
    assert at.utcoffset() == timedelta(0)
    assert (at.hour, at.minute) == (6, 30)
