"""Each command, on a deployment in which a worker runs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cli.terminal import Terminal, eventually

ID = re.compile(r"[0-9a-f]{32}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TASK_FIELDS = {
    "id",
    "name",
    "queue",
    "band",
    "status",
    "attempt",
    "max_attempts",
    "worker",
    "error",
    "progress",
    "submitted_at",
    "queued_at",
    "started_at",
    "finished_at",
    "due_at",
    "expires_at",
    "cancel_requested_at",
    "idempotency_key",
    "crashes",
    "releases",
    "requeues",
}


def test_submit_prints_the_id_alone(shop: Terminal) -> None:
    out = shop.ok("submit", "add", "--args", "[1, 2]")
    assert ID.fullmatch(out.strip())


def test_submit_waits_for_the_result(shop: Terminal) -> None:
    task_id, result = shop.ok("submit", "add", "--args", "[1, 2]", "--wait", "20").splitlines()
    assert ID.fullmatch(task_id)
    assert result == "3"


def test_submit_prints_the_task_as_json(shop: Terminal) -> None:
    task = shop.json("submit", "add", "--kwargs", '{"a": 1, "b": 2}', "--delay", "60")
    assert set(task) == TASK_FIELDS
    assert (task["name"], task["status"], task["started_at"]) == ("add", "SCHEDULED", None)
    assert TIME.fullmatch(task["due_at"])
    task = shop.json("submit", "add", "--args", "[1, 2]", "--wait", "20")
    assert set(task) == TASK_FIELDS | {"result"}
    assert (task["status"], task["result"]) == ("SUCCEEDED", 3)


def test_submit_takes_every_option(shop: Terminal) -> None:
    task = shop.json(
        *("submit", "add", "--args", "[1, 2]", "--queue", "reports", "--band", "high"),
        *("--delay", "0", "--ttl", "100", "--idempotency-key", "k-1", "--max-attempts", "7"),
        *("--timeout", "9", "--result-ttl", "50", "--no-dead-letter"),
    )
    assert (task["queue"], task["band"], task["max_attempts"]) == ("reports", "high", 7)
    assert task["idempotency_key"] == "k-1"
    assert TIME.fullmatch(task["expires_at"])
    record = shop.raw.hgetall(f"{shop.prefix}:task:{task['id']}")
    assert json.loads(record[b"spec"]) == {"name": "add", "timeout": 9.0, "result_ttl": 50.0}
    assert record[b"dead_letter"] == b"0"


def test_submit_reads_arguments_from_stdin(shop: Terminal) -> None:
    text = "x" * 200_000  # more than a command line may hold
    done = shop.run("submit", "echo", "--args", "-", "--wait", "20", stdin=json.dumps([text]))
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out.splitlines()[1]) == text


def test_a_second_submission_under_one_key_is_the_same_task(shop: Terminal) -> None:
    command = ("submit", "add", "--args", "[1, 2]", "--idempotency-key", "k-2")
    first = shop.ok(*command).strip()
    again = shop.run(*command)
    assert (again.code, again.out.strip()) == (0, first)
    assert "key was used before" in again.err
    other = shop.run("submit", "add", "--args", "[3, 4]", "--idempotency-key", "k-2")
    assert (other.code, other.out) == (1, "")
    assert first in other.err
    assert other.err.count("\n") == 1


def test_submit_tells_of_a_failure_it_waited_for(shop: Terminal) -> None:
    command = ("submit", "fail", "--args", '["no luck"]', "--max-attempts", "1", "--wait", "20")
    done = shop.run(*command)
    task_id = done.out.strip()
    assert done.code == 1
    assert done.err == f"dtq: task {task_id} is DEAD_LETTERED: ValueError: no luck\n"
    done = shop.run(*command, "--json")
    assert done.code == 1
    assert json.loads(done.out)["status"] == "DEAD_LETTERED"
    assert done.err.count("\n") == 1


def test_status(shop: Terminal) -> None:
    task_id = shop.submit("add", 1, 2)
    shop.ended(task_id)
    task = shop.json("status", task_id)
    assert set(task) == TASK_FIELDS
    assert (task["id"], task["name"], task["status"]) == (task_id, "add", "SUCCEEDED")
    for name in ("submitted_at", "queued_at", "started_at", "finished_at"):
        assert TIME.fullmatch(task[name])
    shown = dict(line.split(maxsplit=1) for line in shop.ok("status", task_id).splitlines())
    assert shown["id"] == task_id
    assert shown["attempt"] == "1 of 3"
    assert "error" not in shown
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+ s ago\)", shown["finished_at"])


def test_result_is_the_json_text_of_what_was_returned(shop: Terminal) -> None:
    value = {"a": [1, 2.5, None, True], "ü": "\u202e\u001b[31m"}
    task_id = shop.submit("echo", value)
    for command in (("result", task_id, "--wait", "20"), ("result", task_id, "--json")):
        out = shop.ok(*command)
        assert json.loads(out) == value
        assert out.strip().isprintable()


def test_result_of_a_task_that_has_none_is_an_error_in_one_line(shop: Terminal) -> None:
    waiting = shop.submit("add", 1, 2, delay=60)
    failed = shop.submit("fail", "two\nlines", max_attempts=1)
    cancelled = shop.submit("add", delay=60)
    shop.ok("cancel", cancelled, "--reason", "not wanted")
    shop.ended(failed)
    for task_id, reason in (
        (waiting, "is SCHEDULED and has no result yet: give --wait SECONDS to wait for it"),
        (failed, "is DEAD_LETTERED: ValueError: two lines"),
        (cancelled, "is CANCELLED: not wanted"),
    ):
        done = shop.run("result", task_id)
        assert (done.code, done.out) == (1, "")
        assert done.err == f"dtq: task {task_id} {reason}\n"


def test_attempts(shop: Terminal) -> None:
    task_id = shop.submit("fail", "no [bold]luck[/]", max_attempts=2)
    shop.ended(task_id)
    attempts = shop.json("attempts", task_id)
    assert [item["attempt"] for item in attempts] == [1, 2]
    assert [item["outcome"] for item in attempts] == ["retry", "failed"]
    assert attempts[0]["error"]["type"] == "ValueError"
    assert "Traceback" in attempts[0]["error"]["traceback"]
    assert TIME.fullmatch(attempts[1]["ended_at"])
    header, *rows = shop.ok("attempts", task_id).splitlines()
    assert header.split() == ["ATTEMPT", "OUTCOME", "WORKER", "STARTED", "TOOK", "ERROR"]
    assert [row.split()[:2] for row in rows] == [["1", "retry"], ["2", "failed"]]
    assert all(row.endswith("ValueError: no [bold]luck[/]") for row in rows)


def test_cancel_of_a_waiting_task(shop: Terminal) -> None:
    task_id = shop.submit("add", delay=60)
    assert shop.ok("cancel", task_id) == "cancelled: it will not run\n"
    assert shop.ended(task_id) == "CANCELLED"
    again = shop.run("cancel", task_id, "--json")
    assert (again.code, json.loads(again.out)) == (0, {"id": task_id, "answer": "cancelled"})


def test_cancel_of_a_running_task(shop: Terminal) -> None:
    task_id = shop.submit("sleep", 30, queue="mail")
    shop.started(task_id)
    answer = shop.json("cancel", task_id, "--reason", "not wanted")
    assert answer == {"id": task_id, "answer": "requested"}
    assert shop.ended(task_id) == "CANCELLED"


def test_an_unknown_task_is_an_error_in_one_line(shop: Terminal) -> None:
    unknown = "0" * 32
    for command in ("status", "result", "attempts", "cancel"):
        done = shop.run(command, unknown)
        assert (done.code, done.out) == (1, "")
        assert unknown in done.err
        assert done.err.endswith("never submitted here, or its retention is over\n")
        assert done.err.count("\n") == 1


def test_list_shows_the_newest_first(shop: Terminal) -> None:
    ids = [shop.submit("add", queue="listed", delay=60) for _ in range(3)]
    tasks = shop.json("list", "--queue", "listed")
    assert [task["id"] for task in tasks] == ids[::-1]
    assert set(tasks[0]) == TASK_FIELDS
    header, *rows = shop.ok("list", "--queue", "listed").splitlines()
    assert header.split() == ["ID", "NAME", "QUEUE", "STATUS", "ATTEMPT", "AGE"]
    assert [row.split()[0] for row in rows] == ids[::-1]


def test_list_tells_when_there_are_more(shop: Terminal) -> None:
    ids = [shop.submit("add", queue="many", delay=60) for _ in range(2)]
    done = shop.run("list", "--queue", "many", "--limit", "1", "--json")
    assert done.code == 0
    assert [task["id"] for task in json.loads(done.out)] == ids[1:]
    assert done.err == "dtq: more tasks match than these 1: ask for more with --limit\n"


def test_list_by_status(shop: Terminal) -> None:
    scheduled = shop.submit("add", queue="mixed", delay=60)
    cancelled = shop.submit("add", queue="mixed", delay=60)
    shop.ok("cancel", cancelled)
    by_status = ("list", "--queue", "mixed", "--status")
    assert [task["id"] for task in shop.json(*by_status, "scheduled")] == [scheduled]
    both = shop.json(*by_status, "SCHEDULED", "--status", "CANCELLED")
    assert [task["id"] for task in both] == [cancelled, scheduled]


def test_list_by_name(shop: Terminal) -> None:
    task_id = shop.submit("echo", queue="named", delay=60)
    shop.submit("add", queue="named", delay=60)
    by_name = ("list", "--queue", "named", "--name", "echo")
    assert [task["id"] for task in shop.json(*by_name)] == [task_id]
    assert shop.run("list", "--name", "two words").code == 2


def test_queues(shop: Terminal) -> None:
    shop.submit("add", queue="counted", delay=60)
    queue = next(q for q in shop.json("queues") if q["queue"] == "counted")
    assert (queue["tasks"]["SCHEDULED"], queue["tasks"]["QUEUED"], queue["absorbed"]) == (1, 0, 0)
    row = next(x for x in shop.ok("queues").splitlines() if x.startswith("counted "))
    assert row.split()[:5] == ["counted", "(no", "worker)", "1", "0"]


def test_workers(shop: Terminal) -> None:
    task_id = shop.submit("sleep", 3, queue="mail")

    def running() -> Any:
        (worker,) = shop.json("workers")
        return next((task for task in worker["running"] if task["id"] == task_id), None)

    task = eventually("it is seen running", running)
    assert task["name"] == "sleep"
    assert TIME.fullmatch(task["since"])
    (worker,) = shop.json("workers")
    assert worker["queues"] == ["default", "mail"]
    assert worker["tasks"] == ["add", "echo", "fail", "not_a_number", "sleep"]
    assert worker["concurrency"] == 8
    assert worker["running_count"] == len(worker["running"])
    assert TIME.fullmatch(worker["seen_at"])
    header, row = shop.ok("workers").splitlines()
    assert header.split() == ["WORKER", "QUEUES", "RUNNING", "LONGEST", "SEEN"]
    assert row.startswith(worker["id"])
    assert "/8" in row


def test_stats(shop: Terminal) -> None:
    shop.submit("add", queue="nobodys", band="low")
    stats = shop.json("stats")
    assert sum(stats["tasks"].values()) >= 1
    assert stats["workers"] == 1
    assert stats["oldest_waiting"]["seconds"] >= 0
    assert TIME.fullmatch(stats["oldest_waiting"]["since"])
    (partition,) = stats["partitions"]
    assert partition["prefix"] == shop.prefix
    assert partition["leader"].startswith("scheduler-")
    shown = shop.ok("stats")
    assert f"led by             {partition['leader']}" in shown
    assert "oldest waiting" in shown


def test_events(shop: Terminal) -> None:
    task_id = shop.submit("add", 1, 2)
    shop.ended(task_id)
    events = [event for event in shop.json("events", "-n", "50") if event["id"] == task_id]
    assert [event["type"] for event in events] == ["TASK_SUBMITTED", "TASK_SUCCEEDED"]
    assert TIME.fullmatch(events[0]["at"])
    assert len(shop.json("events", "--limit", "2")) == 2
    line = rf"^\d\d:\d\d:\d\d\.\d{{3}}  SUCCEEDED +{task_id}  #1  default$"
    assert re.search(line, shop.ok("events", "--limit", "50"), re.MULTILINE)


def test_events_are_followed_one_object_a_line(shop: Terminal) -> None:
    process = shop.start("events", "--follow", "--json", "--limit", "1")
    assert process.stdout is not None
    json.loads(process.stdout.readline())
    task_id = shop.submit("add", 1, 2)
    types = []
    while "TASK_SUCCEEDED" not in types:
        event = json.loads(process.stdout.readline())
        if event["id"] == task_id:
            types.append(event["type"])
    assert types == ["TASK_SUBMITTED", "TASK_SUCCEEDED"]
    process.kill()


def test_settings(shop: Terminal) -> None:
    (shop.folder / "dtq.toml").write_text("retention = 60\nconcurrency = 5\n")
    try:
        url = "redis://user:secret@example.org:6379/1"
        settings = {s["name"]: s for s in shop.json("settings", "--redis-url", url)}
        table = shop.ok("settings", "--redis-url", url)
    finally:
        (shop.folder / "dtq.toml").unlink()
    assert settings["redis_url"]["value"] == "redis://example.org:6379/1"
    assert "secret" not in table
    sources = {name: setting["source"] for name, setting in settings.items()}
    assert sources["redis_url"] == "argument"
    assert sources["prefix"] == "environment"
    assert sources["concurrency"] == "environment"
    assert (sources["retention"], settings["retention"]["value"]) == ("dtq.toml", 60.0)
    assert sources["band_order"] == "default"
    assert all(setting["meaning"] for setting in settings.values())
    assert re.search(r"^retention +60.0 +dtq.toml", table, re.MULTILINE)


@pytest.mark.parametrize("command", ["list", "queues", "workers", "stats", "events"])
def test_looking_leaves_no_mark(terminal: Terminal, command: str) -> None:
    terminal.ok(command)
    terminal.json(command)
    assert terminal.keys() == {}


@pytest.mark.parametrize("command", ["status", "result", "attempts", "cancel"])
def test_asking_after_an_unknown_task_leaves_no_mark(terminal: Terminal, command: str) -> None:
    assert terminal.run(command, "0" * 32).code == 1
    assert terminal.keys() == {}
