"""Events as they come, and taken up again where they broke off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from api.site import Api, Site, problem
from dtq_client.operating.api_keys import revoke_key


class Frame(NamedTuple):
    id: str
    event: str
    data: Any


@contextmanager
def follow(
    api: Api, last: str | None = None, token: str = "", **query: Any
) -> Iterator[Iterator[Frame]]:
    headers = {"Last-Event-ID": last} if last is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    with api.http.stream("GET", "/v1/events", headers=headers, params=query) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == ": dtq", "events are said to be gone"
        yield frames(lines)


def frames(lines: Iterator[str]) -> Iterator[Frame]:
    fields: dict[str, str] = {}
    for line in lines:
        if not line and "data" in fields:
            yield Frame(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
        name, _, value = line.partition(": ")
        fields = {} if not line else fields | {name: value}


@pytest.fixture(params=[1, 3], ids=["one partition", "three partitions"])
def wide(redis_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(tmp_path, redis_url, partitions=request.param)
    yield made
    made.close()


def submit(site: Site, count: int, queue: str = "default") -> list[str]:
    handles = [site.client.submit_by_name("add", [n], queue=queue) for n in range(count)]
    return [handle.id for handle in handles]


def test_events_come_and_a_broken_connection_is_taken_up_again(wide: Site) -> None:
    past = submit(wide, 3)
    with follow(wide.api) as events:
        first = submit(wide, 5)
        seen = [next(events) for _ in range(2)]
    first += submit(wide, 5)
    again = wide.start_api()
    while len(seen) < 10:
        with follow(again, seen[-1].id) as events:
            seen += [next(events) for _ in range(2)]
    assert sorted(frame.data["id"] for frame in seen) == sorted(first)
    assert not set(past) & {frame.data["id"] for frame in seen}
    assert {frame.event for frame in seen} == {"TASK_SUBMITTED"}


def test_past_events_come_first_if_they_are_wanted(wide: Site) -> None:
    ids = submit(wide, 6)
    with follow(wide.api, newest=4) as events:
        seen = [next(events) for _ in range(4)]
        late = submit(wide, 1)
        seen.append(next(events))
    assert [frame.data["id"] for frame in seen[-1:]] == late
    assert len({frame.data["id"] for frame in seen[:4]} & set(ids)) == 4
    with follow(wide.api, seen[1].id) as events:
        rest = [next(events).data["id"] for _ in range(3)]
    assert rest == [frame.data["id"] for frame in seen[2:]]


def test_no_gap_is_claimed_where_all_events_are_kept(wide: Site) -> None:
    """Also where a partition's oldest event is yet to come, as each of them was asked for."""
    submit(wide, 12)
    with follow(wide.api, newest=500) as events:
        seen = [next(events) for _ in range(12)]
    for number, frame in enumerate(seen[:-1], start=1):
        with follow(wide.api, frame.id) as events:
            assert next(events) == seen[number]


def test_only_a_queue(site: Site) -> None:
    with follow(site.api, queue="quiet") as events:
        submit(site, 3)
        wanted = submit(site, 1, "quiet")
        assert next(events).data["id"] == wanted[0]
    problem(site.get("/v1/events", queue="a b"), 422, "invalid")


@pytest.mark.parametrize("cursor", ["x", "1", "1-1,1-1", "-1-1", "1-1\u00b2", "9" * 40 + "-1"])
def test_a_cursor_that_is_none_is_refused(site: Site, cursor: str) -> None:
    headers = {"Last-Event-ID": cursor.encode("latin-1")}
    problem(site.api.http.get("/v1/events", headers=headers), 422, "invalid")


def test_events_that_are_gone_are_said_to_be(lonely: Site) -> None:
    submit(lonely, 2)
    with follow(lonely.api, newest=2) as events:
        first = next(events).id
    submit(lonely, 3)
    lonely.raw.xtrim(f"{lonely.prefix}:events", maxlen=2, approximate=False)
    headers = {"Last-Event-ID": first}
    with lonely.api.http.stream("GET", "/v1/events", headers=headers) as answer:
        assert next(answer.iter_lines()) == "event: gap"


def test_o1_what_an_event_holds_cannot_forge_another(lonely: Site) -> None:
    submit(lonely, 1)
    hostile = "x\n\ndata: forged\r\nid: 7\r"
    fields = {
        "type": hostile,
        "id": hostile,
        "queue": hostile,
        "attempt": hostile,
        "reason": hostile,
    }
    with follow(lonely.api) as events:
        lonely.raw.xadd(f"{lonely.prefix}:events", fields)
        good = submit(lonely, 1)
        bad, after = next(events), next(events)
    assert (bad.event, bad.data["type"], bad.data["reason"]) == ("event", hostile, hostile)
    assert after.data["id"] == good[0]


def test_a_revoked_key_ends_the_stream(lonely: Site) -> None:
    token = lonely.token("watcher", "read")
    with follow(lonely.api, token=token) as events:
        submit(lonely, 1)
        next(events)
        revoke_key(lonely.client.store, "watcher", "os:test@here")
        assert next(events, None) is None
