"""One task for one request, whatever is sent again (scenario L1)."""

from __future__ import annotations

import json
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
import pytest

from api.site import Api, Site, problem

AT_ONCE = 50
ADD = {"name": "add", "args": [1, 2], "delay": 60}


def test_l1_fifty_at_once_over_four_processes_are_one_task(lonely: Site) -> None:
    apis = [lonely.start_api() for _ in range(4)]
    barrier = Barrier(AT_ONCE)

    def send(number: int) -> tuple[int, httpx.Response]:
        body = ADD | {"args": [number % 2, 2]}
        barrier.wait(20)
        http = apis[number % 4].http
        return number % 2, http.post("/v1/tasks", json=body, headers={"Idempotency-Key": "order-7"})

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, range(AT_ONCE)))
    (winner,) = [half for half, answer in answers if answer.status_code == 201]
    (task_id,) = {answer.json()["id"] for _, answer in answers if answer.status_code == 201}
    for half, answer in answers:
        if half != winner:
            found = problem(answer, 422, "idempotency-key-reused")
            assert found["task_id"] == task_id
        elif answer.status_code != 201:
            found = problem(answer, 409, "in-progress")
            assert (found["task_id"], found["task_status"]) == (task_id, "SCHEDULED")
    assert Counter(answer.status_code for _, answer in answers) == {201: 1, 409: 24, 422: 25}
    (queue,) = lonely.start_api().http.get("/v1/queues").json()["queues"]
    assert sum(queue["tasks"].values()) == 1


def raw(site: Site, body: str | bytes, *keys: str | bytes) -> httpx.Response:
    headers: list[tuple[str, Any]] = [("Content-Type", "application/json")]
    headers += [("Idempotency-Key", key) for key in keys]
    return site.api.http.post("/v1/tasks", content=body, headers=headers)


def test_l1_the_same_meaning_is_the_same_request(site: Site) -> None:
    first = raw(site, '{"name":"echo","args":[{"a":1,"b":"\\u00e9"}],"delay":60}', "meaning")
    assert first.status_code == 201
    for same in (
        '{ "delay" : 60 , "args" : [ {"b":"é", "a":1} ], "name":"echo" }',
        '{"name":"\\u0065cho","args":[{"a":1,"b":"é"}],"kwargs":{},"queue":"default","delay":60.0}',
    ):
        assert (
            problem(raw(site, same, "meaning"), 409, "in-progress")["task_id"] == first.json()["id"]
        )
    for other in (
        '{"name":"echo","args":[{"a":1.0,"b":"é"}],"delay":60}',
        '{"name":"echo","args":[{"a":1,"b":"e\\u0301"}],"delay":60}',
        '{"name":"echo","args":[{"a":1,"b":"é"}],"delay":61}',
        '{"name":"echo","args":[{"a":1,"b":"é"}],"delay":60,"band":"high"}',
        '{"name":"echo","args":[{"a":1,"b":"é"}],"delay":60,"queue":"mail"}',
        '{"name":"echo","args":[],"kwargs":{"value":{"a":1,"b":"é"}},"delay":60}',
        '{"name":"add","args":[{"a":1,"b":"é"}],"delay":60}',
    ):
        problem(raw(site, other, "meaning"), 422, "idempotency-key-reused")


@pytest.mark.parametrize("key", ["k", "x" * 255, "a:b", "{a}", "*", "..", "!~", "0", "STREAMS"])
def test_l1_a_key_of_visible_ascii_is_taken_quoted_or_not(site: Site, key: str) -> None:
    body = json.dumps(ADD)
    first = raw(site, body, key)
    assert first.status_code == 201
    found = problem(raw(site, body, f'"{key}"'), 409, "in-progress")
    assert found["task_id"] == first.json()["id"]
    assert site.get(f"/v1/tasks/{first.json()['id']}").json()["task"]["idempotency_key"] == key


def test_l1_keys_differ_by_case_and_quotes_inside_are_escaped(site: Site) -> None:
    body = json.dumps(ADD)
    assert [raw(site, body, key).status_code for key in ("Case", "case")] == [201, 201]
    first = raw(site, body, r'"say\"hi\\"')
    assert (
        site.get(f"/v1/tasks/{first.json()['id']}").json()["task"]["idempotency_key"] == 'say"hi\\'
    )


@pytest.mark.parametrize(
    "keys",
    [
        [""],
        ['""'],
        ["x" * 256],
        ["a b"],
        ["é".encode()],
        ["a", "a"],
        ["a,\xa0b".encode("latin-1")],
    ],
    ids=repr,
)
def test_l1_a_key_that_breaks_the_rule_is_refused(site: Site, keys: list[str | bytes]) -> None:
    problem(raw(site, json.dumps(ADD), *keys), 400, "invalid-idempotency-key")


def test_l1_a_very_long_key_is_refused(site: Site) -> None:
    assert raw(site, json.dumps(ADD), "x" * 10_000).status_code == 400
    assert raw(site, json.dumps(ADD), "x" * 100_000).status_code == 431


def test_a_batch_takes_no_key_of_its_own(site: Site) -> None:
    answer = site.post("/v1/tasks/batch", {"tasks": [ADD]}, Idempotency_Key="k1")
    problem(answer, 400, "invalid-idempotency-key")


def test_what_is_refused_burns_no_key(site: Site) -> None:
    for wrong in (
        '{"name":"a b"}',
        '{"name":"add","delay":-1}',
        "{",
        '{"name":"add","args":[NaN]}',
    ):
        assert raw(site, wrong, "burnt").status_code in {400, 422}
    assert raw(site, json.dumps(ADD), "burnt").status_code == 201


@pytest.mark.parametrize(
    ("body", "status", "result"),
    [
        ({"name": "add", "args": [1, 2]}, "SUCCEEDED", 3),
        ({"name": "fail", "args": ["x"], "max_attempts": 1}, "DEAD_LETTERED", None),
        ({"name": "fail", "args": ["x"], "max_attempts": 1, "dead_letter": False}, "FAILED", None),
        ({"name": "add", "ttl": 0.01, "queue": "unserved"}, "EXPIRED", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_once_it_has_ended_it_is_replayed(
    site: Site, body: dict[str, Any], status: str, result: Any
) -> None:
    first = site.post("/v1/tasks", body, Idempotency_Key=f"replay-{status}").json()
    assert site.ended(first["id"]) == status
    for _ in range(2):
        again = site.post("/v1/tasks", body, Idempotency_Key=f"replay-{status}")
        assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")
        outcome = again.json()
        assert (outcome["task"]["id"], outcome["task"]["status"]) == (first["id"], status)
        assert (outcome["result"], outcome["result_kept"]) == (result, status == "SUCCEEDED")


def test_a_cancelled_task_is_replayed(site: Site) -> None:
    first = site.post("/v1/tasks", ADD, Idempotency_Key="cancelled").json()
    site.post(f"/v1/tasks/{first['id']}/cancel")
    again = site.post("/v1/tasks", ADD, Idempotency_Key="cancelled")
    assert (again.status_code, again.json()["task"]["status"]) == (200, "CANCELLED")


def test_the_time_of_a_key_begins_at_the_end_of_its_task(site: Site) -> None:
    first = site.post("/v1/tasks", ADD, Idempotency_Key="timed").json()
    key = f"{site.prefix}:idem:timed"
    assert site.raw.ttl(key) == -1
    site.post(f"/v1/tasks/{first['id']}/cancel")
    assert site.raw.ttl(key) > 0


def test_python_and_http_share_a_key_where_nobody_has_an_api_key(site: Site) -> None:
    handle = site.client.submit_by_name("add", [5, 6], idempotency_key="shared", queue="unserved")
    body = {"name": "add", "args": [5, 6], "queue": "unserved"}
    found = problem(site.post("/v1/tasks", body, Idempotency_Key="shared"), 409, "in-progress")
    assert found["task_id"] == handle.id


def test_each_api_key_has_idempotency_keys_of_its_own(lonely: Site) -> None:
    tokens = [lonely.token(name, "submit") for name in ("one", "two")]
    api = lonely.start_api()
    ids = []
    for token in tokens:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
        answers = [api.http.post("/v1/tasks", json=ADD, headers=headers) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 409]
        ids.append(answers[0].json()["id"])
        assert answers[1].json()["task_id"] == ids[-1]
    assert len(set(ids)) == 2
    own = lonely.client.submit_by_name("add", [1, 2], idempotency_key="k", delay=60)
    assert own.id not in ids
    assert {lonely.client.get(task_id).idempotency_key for task_id in ids} == {"k"}
    assert lonely.ok("verify")


def _post_and_vanish(api: Api, key: str) -> None:
    body = json.dumps(ADD)
    with socket.create_connection(api.address, 5) as peer:
        peer.sendall(
            f"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Idempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        assert peer.recv(1) == b"", "it was killed before it could answer"


@pytest.mark.parametrize("point", ["submit.before", "submit.after"])
def test_a_request_whose_answer_was_lost_with_the_process_is_one_task(
    lonely: Site, point: str
) -> None:
    victim = lonely.start_api(failpoints=f"{point}=kill")
    _post_and_vanish(victim, "lost")
    assert victim.process.wait(10) == -9
    answer = lonely.start_api().http.post(
        "/v1/tasks", json=ADD, headers={"Idempotency-Key": "lost"}
    )
    if point == "submit.before":
        task_id = answer.json()["id"]
        assert answer.status_code == 201
    else:
        task_id = problem(answer, 409, "in-progress")["task_id"]
    found = lonely.apis[-1].http.get("/v1/tasks").json()["tasks"]
    assert [task["id"] for task in found] == [task_id]
