"""Tasks over HTTP: submitted, followed, listed, cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from api.site import Site, eventually, problem

UNKNOWN = "0" * 32
RESERVED = (
    *("timeout", "queue", "priority", "delay", "eta", "ttl", "retries", "task_id", "id", "key"),
    *("args", "kwargs", "self", "ctx", "name", "unique", "idempotency_key"),
)


def test_a_task_is_submitted_run_and_its_result_waited_for(site: Site) -> None:
    answer = site.post("/v1/tasks", {"name": "add", "args": [40], "kwargs": {"b": 2}})
    assert answer.status_code == 201
    task = answer.json()
    assert answer.headers["location"] == f"/v1/tasks/{task['id']}"
    assert (task["name"], task["queue"], task["band"]) == ("add", "default", "normal")
    outcome = site.get(f"/v1/tasks/{task['id']}/result", wait=10)
    assert outcome.status_code == 200
    found = outcome.json()
    assert (found["task"]["status"], found["result"], found["result_kept"]) == (
        "SUCCEEDED",
        42,
        True,
    )
    whole = site.get(f"/v1/tasks/{task['id']}").json()
    assert (whole["args"], whole["kwargs"]) == ([40], {"b": 2})
    events = site.get(f"/v1/tasks/{task['id']}/events").json()
    types = [event["type"] for event in events["events"]]
    assert (types[0], types[-1], events["complete"]) == ("TASK_SUBMITTED", "TASK_SUCCEEDED", True)
    (attempt,) = site.get(f"/v1/tasks/{task['id']}/attempts").json()["attempts"]
    assert (attempt["attempt"], attempt["outcome"]) == (1, "succeeded")


def test_a_result_is_not_there_before_the_end(site: Site) -> None:
    task_id = site.accepted("add", 1, 2, delay=60)
    answer = site.get(f"/v1/tasks/{task_id}/result", wait=0.2)
    assert answer.status_code == 202
    assert answer.json()["task"]["status"] == "SCHEDULED"
    assert int(answer.headers["retry-after"]) >= 1


def test_a_failure_is_an_outcome(site: Site) -> None:
    task_id = site.accepted("fail", "why", max_attempts=2)
    found = site.get(f"/v1/tasks/{task_id}/result", wait=10).json()
    assert found["task"]["status"] == "DEAD_LETTERED"
    assert "ValueError: why" in found["task"]["error"]
    assert (found["result"], found["result_kept"]) == (None, False)
    assert len(site.get(f"/v1/tasks/{task_id}/attempts").json()["attempts"]) == 2


def test_a_result_that_is_gone_is_said_to_be(site: Site) -> None:
    task_id = site.accepted("add", 1, 2, result_ttl=0.05)
    assert site.ended(task_id) == "SUCCEEDED"
    key = f"{site.prefix}:result:{task_id}"
    eventually("the end of the result", lambda: not site.raw.exists(key))
    problem(site.get(f"/v1/tasks/{task_id}/result"), 410, "result-expired")


@pytest.mark.parametrize("rest", ["", "/result", "/attempts", "/events"])
@pytest.mark.parametrize("task_id", [UNKNOWN, "nonsense", "a:b", "*", "%0a", "x" * 1_000, "0"])
def test_k4_what_is_no_task_is_not_found(site: Site, task_id: str, rest: str) -> None:
    problem(site.get(f"/v1/tasks/{task_id}{rest}"), 404, "task-not-found")


def test_k4_arguments_of_any_name_arrive_untouched(site: Site) -> None:
    given = {name: name.upper() for name in RESERVED}
    task_id = site.accepted("echo", given)
    assert site.get(f"/v1/tasks/{task_id}/result", wait=10).json()["result"] == given
    answer = site.post("/v1/tasks", {"name": "anything", "kwargs": given, "delay": 60})
    assert site.get(f"/v1/tasks/{answer.json()['id']}").json()["kwargs"] == given


@pytest.mark.parametrize("value", [None, True, 123456789012345678901234567890, 1.0, -0.0, "é", "𝄞"])
def test_values_keep_their_kind(site: Site, value: Any) -> None:
    task_id = site.accepted("echo", [value])
    found = site.get(f"/v1/tasks/{task_id}/result", wait=10).json()["result"]
    assert (found, type(found[0])) == ([value], type(value))


@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "{a}", "*", "x" * 101, "\n", "é", 7, None, True]
)
@pytest.mark.parametrize("member", ["name", "queue", "band"])
def test_k4_names_are_checked_by_the_one_rule(site: Site, member: str, name: Any) -> None:
    body = {"name": "add", "delay": 60, member: name}
    problem(site.post("/v1/tasks", body), 422, "invalid")


@pytest.mark.parametrize(
    "wrong",
    [
        {"args": {}},
        {"kwargs": []},
        {"delay": -1},
        {"delay": "soon"},
        {"ttl": 1e12},
        {"max_attempts": 0},
        {"max_attempts": 1.5},
        {"timeout": 0},
        {"dead_letter": "no"},
        {"unknown": 1},
        {"idempotency_key": "k"},
        {"durability": "somehow"},
    ],
    ids=str,
)
def test_options_are_checked(site: Site, wrong: dict[str, Any]) -> None:
    problem(site.post("/v1/tasks", {"name": "add", **wrong}), 422, "invalid")


def test_each_item_of_a_batch_is_answered_by_itself(site: Site) -> None:
    first = site.post("/v1/tasks", {"name": "echo", "args": ["x"]}, Idempotency_Key="batch-1")
    assert site.ended(first.json()["id"]) == "SUCCEEDED"
    items = [
        {"name": "add", "args": [1, 2]},
        {"name": "no name"},
        {"name": "echo", "args": ["x"], "idempotency_key": "batch-1"},
        {"name": "echo", "args": ["y"], "idempotency_key": "batch-1"},
        {"name": "add", "args": [1, 2], "delay": 60, "idempotency_key": "batch-2"},
        {"name": "add", "args": [1, 2], "delay": 60, "idempotency_key": "batch-2"},
        17,
    ]
    answer = site.post("/v1/tasks/batch", {"tasks": items})
    assert answer.status_code == 200
    found = answer.json()["items"]
    assert [item["status"] for item in found] == [201, 422, 200, 422, 201, 409, 422]
    assert found[2]["outcome"]["result"] == "x"
    assert found[3]["problem"]["type"] == "urn:dtq:problem:idempotency-key-reused"
    assert found[5]["problem"]["task_id"] == found[4]["task"]["id"]
    assert site.ended(found[0]["task"]["id"]) == "SUCCEEDED"


def test_a_thousand_go_in_one_batch_and_no_more(site: Site) -> None:
    item = {"name": "add", "args": [1, 2], "queue": "thousand", "delay": 600}
    found = site.post("/v1/tasks/batch", {"tasks": [item] * 1000}).json()["items"]
    assert {entry["status"] for entry in found} == {201}
    assert len({entry["task"]["id"] for entry in found}) == 1000
    problem(site.post("/v1/tasks/batch", {"tasks": [item] * 1001}), 422, "invalid")
    assert site.post("/v1/tasks/batch", {"tasks": []}).json() == {"items": []}
    walked = walk(site, "/v1/tasks", "tasks", queue="thousand", limit=300)
    assert sorted(walked, reverse=True) == walked
    assert set(walked) == {entry["task"]["id"] for entry in found}


def walk(site: Site, path: str, member: str, **query: Any) -> list[str]:
    """The ids of all pages."""
    ids: list[str] = []
    cursor = {}
    while True:
        page = site.get(path, **query, **cursor).json()
        ids += [one["id"] for one in page[member]]
        if page["next"] is None:
            assert len(set(ids)) == len(ids)
            return ids
        cursor = {"cursor": page["next"]}


def test_tasks_are_listed_by_status_queue_and_name(site: Site) -> None:
    task_id = site.accepted("add", 1, 2, delay=60, queue="listed")
    site.accepted("echo", 1, delay=60, queue="listed")
    found = site.get("/v1/tasks", queue="listed", name="add", status=["SCHEDULED", "QUEUED"]).json()
    assert [task["id"] for task in found["tasks"]] == [task_id]
    assert found["next"] is None
    assert site.get("/v1/tasks", queue="listed", status="RUNNING").json()["tasks"] == []
    for wrong in (
        {"status": "LOST"},
        {"queue": "a b"},
        {"limit": 0},
        {"limit": 501},
        {"cursor": "x"},
    ):
        problem(site.get("/v1/tasks", **wrong), 422, "invalid")


def test_a_task_is_cancelled_in_each_state(site: Site) -> None:
    waiting = site.accepted("add", 1, 2, delay=60)
    running = site.accepted("sleep", 60, queue="mail")
    site.started(running)
    ended = site.accepted("add", 1, 2)
    site.ended(ended)
    answers = [
        site.post(f"/v1/tasks/{task_id}/cancel", {"reason": "twice"}).json()
        for task_id in (waiting, running, ended)
    ]
    assert [answer["answer"] for answer in answers] == ["cancelled", "requested", "ended"]
    assert site.ended(running) == "CANCELLED"
    problem(site.post(f"/v1/tasks/{UNKNOWN}/cancel"), 404, "task-not-found")
    assert site.get("/v1/audit").json()["operations"][-1]["action"] == "task.cancel"


def test_what_is_stored_wrongly_breaks_no_list(site: Site) -> None:
    good = site.accepted("add", 1, 2, queue="mail")
    bad = site.accepted("add", 1, 2, queue="mail")
    for task_id in (good, bad):
        site.ended(task_id)
    site.raw.set(f"{site.prefix}:result:{bad}", b"[NaN")
    site.raw.hset(f"{site.prefix}:task:{bad}", mapping={"payload": "\x80[", "progress": "NaN"})
    found = site.get("/v1/tasks", queue="mail", name="add").json()["tasks"]
    assert {task["id"] for task in found} == {good, bad}
    whole = site.get(f"/v1/tasks/{bad}").json()
    assert (whole["args"], whole["kwargs"], whole["task"]["progress"]) == (None, None, None)
    outcome = site.get(f"/v1/tasks/{bad}/result").json()
    assert (outcome["result"], outcome["result_kept"]) == (None, False)


def test_the_trace_context_of_a_request_is_carried_with_its_tasks(site: Site) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    one = site.post("/v1/tasks", {"name": "add", "args": [1, 2]}, traceparent=parent).json()["id"]
    batch = {"tasks": [{"name": "add", "args": [1, 2]}] * 2}
    many = site.post("/v1/tasks/batch", batch, traceparent=parent, tracestate="a=b").json()
    ids = [one, *(item["task"]["id"] for item in many["items"])]
    specs = [site.raw.hget(site.client.store.keys_of(i).task(i), "spec") for i in ids]
    assert [parent.encode() in spec for spec in specs] == [True] * 3
    assert [b'"tracestate":"a=b"' in spec for spec in specs] == [False, True, True]
    bad = site.post("/v1/tasks", {"name": "add", "args": [1, 2]}, traceparent="x").json()["id"]
    assert b"traceparent" not in site.raw.hget(site.client.store.keys_of(bad).task(bad), "spec")
