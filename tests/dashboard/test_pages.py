"""What each page shows, what can be done on it, and that it is live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.site import Site, eventually
from dashboard.desk import PAGES, Desk
from dtq_core.measures import Histogram
from dtq_dashboard.charts import chart
from dtq_dashboard.history import percentile_s

HINTS = {
    "/": "Nothing was ever submitted",
    "/queues": "dtq submit",
    "/tasks": "dtq submit",
    "/dead-letters": "no task has failed",
    "/workers": "dtq worker",
    "/schedules": "dtq cron add",
    "/audit": "Nothing yet",
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_without_anything_tells_the_next_step(desk: Desk, path: str) -> None:
    assert HINTS[path] in desk.text(path)


def acts(site: Site) -> list[tuple[str, str, str]]:
    return [(act["action"], act["who"], act["reason"]) for act in site.json("audit")]


def test_a_queue_can_be_paused_resumed_and_purged(desk: Desk, site: Site) -> None:
    ids = [site.submit("echo", n, queue="mail") for n in range(3)]
    assert "Cancel all 3 tasks that wait in mail" in desk.text("/queues")
    assert desk.post("/queues/mail/pause", reason="provider down").status_code == 303
    eventually("it to be shown", lambda: "paused since" in desk.text("/queues"))
    desk.post("/queues/mail/resume", reason="back")
    desk.post("/queues/mail/purge", reason="wrong campaign")
    assert {site.client.get(task_id).status for task_id in ids} == {"CANCELLED"}
    assert acts(site) == [
        ("queue.pause", "http", "provider down"),
        ("queue.resume", "http", "back"),
        ("queue.purge", "http", "wrong campaign"),
    ]
    assert "wrong campaign" in desk.text("/audit")


def test_tasks_are_found_by_status_queue_name_and_id(desk: Desk, site: Site) -> None:
    mail, bank = site.submit("echo", 1, queue="mail"), site.submit("add", 1, 2, queue="bank")
    later = site.submit("echo", 1, queue="mail", delay=600)
    for query, found in (
        ("", {mail, bank, later}),
        ("?queue=mail", {mail, later}),
        ("?status=queued", {mail, bank}),
        ("?status=SCHEDULED&queue=mail", {later}),
        ("?name=add", {bank}),
        ("?name=nobody", set()),
    ):
        text = desk.text(f"/tasks{query}")
        assert {task_id for task_id in (mail, bank, later) if task_id in text} == found, query
    assert desk.get(f"/tasks?id={mail}").headers["location"] == f"/dashboard/tasks/{mail}"
    assert desk.get("/tasks?status=nonsense").status_code == 422
    assert desk.get("/tasks?id=nonsense").headers["location"] == "/dashboard/tasks/unknown"
    assert desk.get("/tasks/unknown").status_code == 404


def test_many_tasks_come_page_by_page(desk: Desk, site: Site) -> None:
    ids = [site.submit("echo", n) for n in range(120)]
    seen: list[str] = []
    address = "/tasks?queue=default"
    for _ in range(3):
        text = desk.text(address)
        seen += sorted((task_id for task_id in ids if task_id in text), reverse=True)
        if 'rel="next"' not in text:
            break
        address = text.split('rel="next"')[0].rsplit('href="/dashboard', 1)[1].split('"')[0]
        address = address.replace("&amp;", "&")
    assert sorted(seen) == sorted(ids)


def test_a_task_is_shown_with_its_attempts_and_events(desk: Desk, site: Site) -> None:
    site.start_worker()
    failed = site.submit("fail", "no good", max_attempts=2, idempotency_key="order-7")
    site.ended(failed)
    text = desk.text(f"/tasks/{failed}")
    for part in (
        "dead lettered",
        "no good",
        "order-7",
        "attempt 1 on",
        "attempt 2 on",
        "Traceback",
    ):
        assert part in text
    done = site.submit("echo", {"a": [1, 2]})
    site.ended(done)
    assert "&#34;a&#34;" in desk.text(f"/tasks/{done}").split("<h2>Result</h2>")[1]
    assert desk.post(f"/tasks/{failed}/requeue", reason="mended").status_code == 303
    eventually("its second death", lambda: site.client.get(failed).requeues == 1)


def test_a_waiting_task_can_be_cancelled(desk: Desk, site: Site) -> None:
    task_id = site.submit("echo", 1, delay=600)
    assert "Cancel this task?" in desk.text(f"/tasks/{task_id}")
    answer = desk.post(f"/tasks/{task_id}/cancel", reason="ordered twice")
    assert answer.headers["location"] == f"/dashboard/tasks/{task_id}"
    assert site.client.get(task_id).status == "CANCELLED"
    assert "Cancel this task?" not in desk.text(f"/tasks/{task_id}")


def test_dead_letters_are_requeued_and_purged_as_they_match(desk: Desk, site: Site) -> None:
    worker = site.start_worker()
    ids = [site.submit("fail", "x", max_attempts=1) for _ in range(3)]
    other = site.submit("not_a_number")
    for task_id in (*ids, other):
        site.ended(task_id)
    worker.terminate()
    worker.wait(20)
    assert "4 dead letters match" in desk.text("/dead-letters")
    assert "Remove 3 dead letters for good" in desk.text("/dead-letters?task=fail")
    desk.post("/dead-letters/requeue?task=not_a_number", reason="again")
    assert site.client.get(other).status == "QUEUED"
    desk.post("/dead-letters/purge?task=fail", reason="nobody asked")
    assert "There are none" in desk.text("/dead-letters")
    assert [act[0] for act in acts(site)] == ["dlq.requeue", "dlq.purge"]


def test_workers_tell_what_they_run(desk: Desk, site: Site) -> None:
    site.start_worker("--queue", "mail")
    task_id = site.submit("sleep", 30, queue="mail")
    eventually("the worker to tell", lambda: task_id in desk.text("/workers"))
    assert "Serves mail" in desk.text("/workers")
    site.client.cancel(task_id)


def test_schedules_are_paused_resumed_and_fired(desk: Desk, site: Site) -> None:
    site.ok("cron", "add", "nightly", "echo", "--cron", "30 2 * * *", "--args", "[1]")
    assert "30 2 * * *" in desk.text("/schedules")
    desk.post("/schedules/nightly/pause", reason="holiday")
    assert "paused since" in desk.text("/schedules")
    desk.post("/schedules/nightly/resume")
    desk.post("/schedules/nightly/run")
    assert len(site.json("list")) == 1


def test_an_open_page_is_sent_what_changes(desk: Desk, site: Site) -> None:
    with desk.following("/tasks") as parts:
        assert "No task matches" in next(parts)
        task_id = site.submit("echo", 1)
        assert task_id in next(parts)
        site.client.cancel(task_id)
        assert 'class="status cancelled"' in next(parts)


def test_an_open_page_ends_with_the_key(site: Site) -> None:
    from dtq_client.operating.api_keys import revoke_key

    token = site.token("reader", "read")
    desk = Desk(site)
    desk.sign_in(token)
    with desk.following("/queues") as parts:
        next(parts)
        revoke_key(site.client.store, "reader", "os:test@here")
        assert list(parts) == []
    desk.close()


EVIL = (
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "</script><script>alert(1)</script>",
)


@pytest.mark.parametrize("evil", EVIL)
def test_o1_whatever_tasks_hold_is_inert_on_every_page(desk: Desk, site: Site, evil: str) -> None:
    site.start_worker()
    failed = site.submit("fail", evil, max_attempts=1, idempotency_key=evil.replace(" ", "/"))
    echoed = site.submit("echo", {evil: [evil]})
    for task_id in (failed, echoed):
        site.ended(task_id)
    keys = site.client.store.keys_of(echoed)
    for field in ("error", "worker", "progress"):
        site.raw.hset(keys.task(echoed), field, f'"{evil}"')
    site.client.store.link.raw("HSET", keys.queues, evil, "{}")
    desk.post("/queues/default/pause", reason=evil)
    pages = [*PAGES, f"/tasks/{failed}", f"/tasks/{echoed}", f"/tasks?name={evil}"]
    texts = [desk.get(path).text for path in [*pages, f"/{evil}", f"/dead-letters?task={evil}"]]
    with desk.following(f"/tasks/{failed}") as parts:
        texts.append(next(parts))
    for text in texts:
        for raw in EVIL:
            assert raw not in text
        assert "<svg onload" not in text
    assert sum("onerror" in text or "onload" in text or "alert(1)" in text for text in texts) >= 4


def test_redis_that_is_away_is_said_on_the_page(desk: Desk, tmp_path: Path, redis_url: str) -> None:
    from dtq_core.embedded import start_temporary

    with start_temporary(tmp_path / "own") as server:
        own = Site(tmp_path, server.url)
        other = Desk(own)
        assert other.get("/queues").status_code == 200
        server.kill()
        answer = other.get("/tasks")
        assert answer.status_code == 503
        assert 'role="alert"' in answer.text
        other.close()
        own.client.close()
        for api in own.apis:
            api.http.close()
            api.process.kill()
            api.process.communicate()


def test_a_chart_goes_from_its_lowest_to_its_highest() -> None:
    drawn: Any = chart("Ended", [0, 5, 10], "a second")
    assert (drawn.newest, drawn.highest) == ("10 a second", "10 a second")
    assert drawn.points == "0.0,59.0 150.0,30.0 300.0,1.0"
    assert chart("Ended", []).points == ""
    assert chart("Ended", [0, 0]).points == "0.0,59.0 300.0,59.0"


def test_a_percentile_is_of_what_came_between_two_looks() -> None:
    before, now = Histogram(), Histogram()
    before.add(10_000_000)
    now.add(10_000_000)
    for _ in range(99):
        now.add(900)
    assert percentile_s(before, now, 0.99) == 0.001
    assert percentile_s(now, now, 0.99) == 0.0
    now.add(10**11)
    now.add(10**11)
    assert percentile_s(before, now, 0.99) == 1_800.0
