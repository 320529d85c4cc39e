"""Dead letters and purging, as an operator meets them at a terminal."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Callable

import pytest

from cli.terminal import Terminal, eventually

Dead = Callable[..., list[str]]


@pytest.fixture
def dead(shop: Terminal) -> Dead:
    """Makes dead letters of a queue."""

    def make(queue: str, count: int = 1, text: str = "no") -> list[str]:
        ids = [shop.submit("fail", text, queue=queue, max_attempts=1) for _ in range(count)]
        assert {shop.ended(task_id) for task_id in ids} == {"DEAD_LETTERED"}
        return ids

    return make


@pytest.fixture(scope="module", autouse=True)
def _serves_all(shop: Terminal) -> None:
    shop.start_worker("-q", "default", "-q", "mail", "-q", "red", "-q", "blue", "-q", "green")


def ids_of(found: list[dict[str, str]]) -> set[str]:
    return {letter["id"] for letter in found}


def test_letters_are_listed_by_queue_task_error_and_age(shop: Terminal, dead: Dead) -> None:
    ids = set(dead("red", 2))
    assert ids_of(shop.json("dlq", "list", "--queue", "red")) == ids
    for wanted in (["--task", "fail"], ["--error", "ValueError"], ["--newer-than", "600"]):
        assert ids_of(shop.json("dlq", "list", "--queue", "red", *wanted)) == ids
    for other in (["--task", "add"], ["--error", "KeyError"], ["--older-than", "600"]):
        assert shop.json("dlq", "list", "--queue", "red", *other) == []
    assert shop.ok("dlq", "list", "--queue", "red").count("ValueError: no") == 2
    done = shop.run("dlq", "list", "--queue", "red", "--limit", "1")
    assert "more than these 1" in done.err


def test_a_letter_is_shown_with_its_arguments_and_attempts(shop: Terminal, dead: Dead) -> None:
    (task_id,) = dead("red", text="\x1b[31mno")
    out = shop.ok("dlq", "show", task_id)
    assert "\x1b" not in out
    assert "[31mno" in out
    found = shop.json("dlq", "show", task_id)
    assert (found["args"], found["kwargs"]) == (["\x1b[31mno"], {})
    assert found["attempts"][0]["error"]["type"] == "ValueError"
    done = shop.run("dlq", "show", shop.submit("add", 1, 2))
    assert done.code == 1


def test_a_requeue_tells_first_asks_and_runs_tasks_again(shop: Terminal, dead: Dead) -> None:
    ids = dead("blue", 3)
    assert "3 dead letters would be requeued" in shop.ok(
        "dlq", "requeue", "-q", "blue", "--dry-run"
    )
    refused = shop.run("dlq", "requeue", "-q", "blue")
    assert refused.code == 2
    assert "Requeue 3 dead letters?" in refused.err
    assert "--yes" in refused.err
    assert shop.run("dlq", "requeue").code == 2, "nobody means all of them by naming none"
    done = shop.json("dlq", "requeue", "-q", "blue", "--rate", "1000", "--yes", "--reason", "back")
    assert done == {"matched": 3, "changed": 3}
    eventually(
        "they fail again", lambda: ids_of(shop.json("dlq", "list", "-q", "blue")) == set(ids)
    )
    assert {shop.client.get(task_id).requeues for task_id in ids} == {1}
    assert [a.attempt for a in shop.client.attempts(ids[0])] == [1, 1]
    act = shop.json("audit")[-1]
    assert (act["action"], act["scope"], act["reason"]) == ("dlq.requeue", "queue=blue", "back")


def test_tasks_are_requeued_by_id_also_failed_ones(shop: Terminal, dead: Dead) -> None:
    (letter,) = dead("green")
    failed = shop.submit("fail", "no", queue="green", max_attempts=1, dead_letter=False)
    assert shop.ended(failed) == "FAILED"
    assert "2 of 2 were requeued" in shop.ok("dlq", "requeue", letter, failed)
    eventually("both fail", lambda: {shop.ended(letter), shop.ended(failed)})
    done = shop.run("dlq", "requeue", shop.submit("add", 1, 2))
    assert done.code == 1
    assert "1 of the named tasks did not fail" in done.err


def test_a_failed_task_is_shown_without_a_dead_letter_and_has_none_to_purge(
    shop: Terminal,
) -> None:
    failed = shop.submit("fail", "why", queue="green", max_attempts=1, dead_letter=False)
    assert shop.ended(failed) == "FAILED"
    shown = shop.ok("dlq", "show", failed)
    assert "none: the task is FAILED" in shown
    assert "ValueError: why" in shown
    found = shop.json("dlq", "show", failed)
    assert found["status"] == "FAILED"
    assert found["letter"]["error_type"] == "ValueError"
    done = shop.run("dlq", "purge", failed, "--yes")
    assert (done.code, done.out) == (1, "0 of 0 were removed\n")
    assert "1 of the named tasks is no dead letter; what is FAILED ends with" in done.err
    assert shop.client.get(failed).status == "FAILED"


def test_what_did_not_fail_is_no_dead_letter_and_says_what_it_is(shop: Terminal) -> None:
    task_id = shop.submit("add", 1, 2)
    shop.ended(task_id)
    done = shop.run("dlq", "show", task_id)
    assert (done.code, done.err) == (
        1,
        f"dtq: task {task_id} is no dead letter: it is SUCCEEDED\n",
    )


def test_letters_are_purged_for_good_and_their_ids_are_kept(shop: Terminal, dead: Dead) -> None:
    ids = dead("green", 2)
    assert "would be removed" in shop.ok("dlq", "purge", *ids, "--dry-run")
    assert shop.run("dlq", "purge", *ids).code == 2
    assert shop.json("dlq", "purge", *ids, "--yes")["changed"] == 2
    assert shop.run("status", ids[0]).code == 1
    assert set(shop.json("audit")[-1]["ids"]) == set(ids)


def test_a_purge_asks_with_the_number_and_cancels_what_waits(shop: Terminal) -> None:
    shop.ended(shop.submit("sleep", 0, queue="mail"))
    shop.ok("pause", "mail")
    ids = [shop.submit("sleep", 0, queue="mail", delay=600) for _ in range(2)]
    ids += [shop.submit("sleep", 0, queue="mail") for _ in range(3)]
    other = shop.submit("add", 1, 2, delay=600)
    assert "5 tasks would be cancelled" in shop.ok("purge", "-q", "mail", "--dry-run")
    assert answered(shop, "n", "purge", "-q", "mail") == 1
    assert {shop.client.get(task_id).status.terminal for task_id in ids} == {False}
    assert answered(shop, "y", "purge", "-q", "mail", "--reason", "wrong ones") == 0
    assert {shop.client.get(task_id).error for task_id in ids} == {"purged: wrong ones"}
    assert shop.client.get(other).status == "SCHEDULED"
    shop.ok("resume", "mail")
    assert shop.run("purge", "-q", "nowhere", "--yes").code == 1


def answered(shop: Terminal, answer: str, *arguments: str) -> int:
    """Run a command at a terminal of its own, and type an answer."""
    controller, end = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number in (0, 1, 2):
            os.dup2(end, number)
        os.chdir(shop.folder)
        python = sys.executable
        os.execve(python, [python, "-m", "dtq_cli.main", *arguments], shop.environ)
    os.close(end)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(controller, 1000)
    assert b"Cancel 5 tasks that wait in mail?" in shown
    os.write(controller, f"{answer}\n".encode())
    try:
        while os.read(controller, 1000):
            pass
    except OSError:  # the other end is closed
        pass
    os.close(controller)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_an_interrupted_requeue_says_how_far_it_came_and_can_be_repeated(
    shop: Terminal, dead: Dead
) -> None:
    shop.ok("pause", "red")
    ids = ids_of(shop.json("dlq", "list", "-q", "red")) or set(dead("red", 2))
    process = shop.start("dlq", "requeue", "-q", "red", "--rate", "0.5", "--yes")
    eventually(
        "the first to go",
        lambda: len(shop.json("dlq", "list", "-q", "red")) == len(ids) - 1,
    )
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "stopped: 1 was requeued, the rest is as it was" in err
    assert shop.json("verify")["kinds"] == []
    assert shop.json("dlq", "requeue", "-q", "red", "--yes")["changed"] == len(ids) - 1
    shop.ok("resume", "red")
