"""Queues, dead letters, schedules, workers and the audit log over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from api.site import Site, eventually, problem
from api.test_tasks import walk


def counts(site: Site, queue: str) -> dict[str, int]:
    found = site.get("/v1/queues").json()["queues"]
    return next(one["tasks"] for one in found if one["queue"] == queue)


def last_act(site: Site) -> dict[str, Any]:
    act: dict[str, Any] = site.get("/v1/audit", limit=1).json()["operations"][0]
    return act


def test_a_queue_is_paused_and_resumed(site: Site) -> None:
    site.ended(site.accepted("add", 1, 2))
    paused = site.post("/v1/queues/default/pause", {"reason": "the provider is down"})
    assert paused.json() == {"changed": True}
    assert site.post("/v1/queues/default/pause").json() == {"changed": False}
    act = last_act(site)
    assert (act["action"], act["who"], act["changed"]) == ("queue.pause", "http", 0)
    waiting = site.accepted("add", 1, 2)
    (info,) = [q for q in site.get("/v1/queues").json()["queues"] if q["queue"] == "default"]
    assert info["paused_since"].endswith("Z")
    assert site.get(f"/v1/tasks/{waiting}/result", wait=0.3).status_code == 202
    assert site.post("/v1/queues/default/resume").json() == {"changed": True}
    assert site.ended(waiting) == "SUCCEEDED"


@pytest.mark.parametrize("what", ["pause", "resume", "purge"])
def test_what_no_queue_is_called_is_refused(site: Site, what: str) -> None:
    problem(site.post(f"/v1/queues/never/{what}"), 404, "queue-not-found")
    problem(site.post(f"/v1/queues/a%20b/{what}"), 422, "invalid")
    problem(site.post(f"/v1/queues/default/{what}", {"reason": "x" * 1_001}), 422, "invalid")
    problem(site.post(f"/v1/queues/default/{what}", {"why": "x"}), 422, "invalid")
    assert site.post(f"/v1/queues/a%2Fb/{what}").status_code in {404, 422}


def test_a_queue_is_purged_after_a_look(site: Site) -> None:
    for band in ("high", "low", "low"):
        site.accepted("add", 1, 2, queue="purged", delay=600, band=band)
    dry = site.post("/v1/queues/purged/purge", {"dry_run": True}).json()
    assert dry == {"matched": 3, "changed": 0, "dry_run": True}
    low = site.post("/v1/queues/purged/purge", {"band": "low", "reason": "wrong"}).json()
    assert low == {"matched": 2, "changed": 2, "dry_run": False}
    assert counts(site, "purged")["CANCELLED"] == 2
    assert last_act(site)["action"] == "queue.purge"
    problem(site.post("/v1/queues/purged/purge", {"band": "odd"}), 422, "invalid")


@pytest.fixture(scope="module")
def dead(site: Site) -> list[str]:
    items = [{"name": "fail", "args": [f"no {n}"], "max_attempts": 1} for n in range(12)]
    items.append({"name": "missing", "max_attempts": 1, "delay": 600})
    answered = site.post("/v1/tasks/batch", {"tasks": items}).json()["items"]
    ids = [item["task"]["id"] for item in answered[:-1]]
    for task_id in ids:
        site.ended(task_id)
    return ids


def test_dead_letters_are_listed_page_by_page(site: Site, dead: list[str]) -> None:
    assert set(walk(site, "/v1/dead-letters", "dead_letters", limit=5)) == set(dead)
    for wanted in (
        {"name": "fail"},
        {"error": "ValueError"},
        {"queue": "default"},
        {"newer_than": 600},
    ):
        assert len(site.get("/v1/dead-letters", **wanted).json()["dead_letters"]) == 12
    for other in ({"name": "add"}, {"error": "KeyError"}, {"queue": "mail"}, {"older_than": 600}):
        assert site.get("/v1/dead-letters", **other).json()["dead_letters"] == []
    for wrong in ({"cursor": "x"}, {"queue": "a b"}, {"older_than": -1}, {"older_than": "nan"}):
        problem(site.get("/v1/dead-letters", **wrong), 422, "invalid")


def test_dead_letters_are_requeued_and_removed(site: Site, dead: list[str]) -> None:
    for body in (
        {},
        {"all": True, "queue": "default"},
        {"ids": dead[:1], "queue": "default"},
        {"ids": ["x"]},
    ):
        problem(site.post("/v1/dead-letters/requeue", body), 422, "invalid")
    dry = site.post("/v1/dead-letters/requeue", {"name": "fail", "dry_run": True}).json()
    assert dry == {"matched": 12, "changed": 0, "dry_run": True}
    done = site.post("/v1/dead-letters/requeue", {"ids": dead[:2], "reason": "again"}).json()
    assert (done["matched"], done["changed"]) == (2, 2)
    assert last_act(site)["action"] == "dlq.requeue"
    for task_id in dead[:2]:
        eventually("its second end", lambda task_id=task_id: site.client.get(task_id).requeues)
        assert site.ended(task_id) == "DEAD_LETTERED"
    dry = site.post("/v1/dead-letters/purge", {"ids": dead[:1], "dry_run": True}).json()
    assert (dry["matched"], dry["changed"]) == (1, 0)
    done = site.post("/v1/dead-letters/purge", {"ids": dead[:1]}).json()
    assert done["changed"] == 1
    problem(site.get(f"/v1/tasks/{dead[0]}"), 404, "task-not-found")
    assert site.post("/v1/dead-letters/purge", {"all": True}).json()["changed"] == 11
    assert site.get("/v1/dead-letters").json() == {"dead_letters": [], "next": None}


def test_a_schedule_is_set_paused_fired_and_removed(site: Site) -> None:
    path = "/v1/schedules/nightly"
    body = {"task": "add", "cron": "30 2 * * *", "tz": "Europe/Berlin", "args": [1, 2]}
    put = lambda **more: site.api.http.put(path, json=body | more)  # noqa: E731
    assert [put().json(), put().json()] == [{"changed": True}, {"changed": False}]
    assert put(cron="31 2 * * *").json() == {"changed": True}
    (found,) = site.get("/v1/schedules").json()["schedules"]
    assert (found["name"], found["task"], found["cron"]) == ("nightly", "add", "31 2 * * *")
    assert site.post(f"{path}/pause").json() == {"changed": True}
    assert site.get("/v1/schedules").json()["schedules"][0]["paused_at"]
    assert site.post(f"{path}/resume").json() == {"changed": True}
    fired = site.post(f"{path}/run")
    assert fired.status_code == 201
    outcome = site.get(f"/v1/tasks/{fired.json()['id']}/result", wait=10).json()
    assert outcome["result"] == 3
    for wrong in (
        {"cron": "30 2 31 2 *"},
        {"cron": "x"},
        {"tz": "Mars/Base"},
        {"misfire": "never"},
        {"overlap": 1},
        {"task": "a b"},
        {"queue": "a b"},
        {"ttl": -1},
    ):
        problem(put(**wrong), 422, "invalid")
    answer = site.api.http.request("DELETE", path, json={"reason": "gone"})
    assert answer.json() == {"changed": True}
    for what in ("pause", "resume", "run"):
        problem(site.post(f"{path}/{what}"), 404, "schedule-not-found")
    problem(site.api.http.request("DELETE", path, json={}), 404, "schedule-not-found")
    problem(site.post("/v1/schedules/a%20b/run"), 404, "schedule-not-found")


def test_figures_workers_and_the_audit_log(site: Site) -> None:
    site.ended(site.accepted("add", 1, 2))
    stats = site.get("/v1/stats").json()
    assert stats["tasks"]["SUCCEEDED"] >= 1
    assert stats == site.json("stats")
    (worker,) = site.get("/v1/workers").json()["workers"]
    assert "add" in worker["tasks"]
    site.post("/v1/queues/default/resume")
    assert site.get("/v1/audit/check").json()["partitions"][0]["problem"] is None
    for limit in (0, 501, "x"):
        problem(site.get("/v1/audit", limit=limit), 422, "invalid")


def test_the_audit_log_names_the_api_key(lonely: Site) -> None:
    token = lonely.token("deploy", "admin")
    api = lonely.start_api()
    lonely.client.submit_by_name("add", [1, 2], delay=60)
    headers = {"Authorization": f"Bearer {token}"}
    api.http.post("/v1/queues/default/purge", json={"reason": "test"}, headers=headers)
    made, purged = lonely.json("audit")
    assert (made["action"], made["who"]) == ("key.create", "os:test@here")
    assert (purged["who"], purged["reason"], purged["changed"]) == ("key:deploy", "test", 1)
