"""Tasks that wait in vain: a queue that no worker serves, a name that no worker knows."""

from __future__ import annotations

from cli.terminal import Terminal, eventually


def test_a_queue_is_marked_in_which_tasks_wait_and_that_no_worker_serves(
    terminal: Terminal,
) -> None:
    terminal.start_worker()
    terminal.submit("add", 1, 2, queue="nowhere")
    terminal.ended(terminal.submit("add", 1, 2))
    shown = terminal.ok("queues")
    assert "nowhere (no worker)" in shown
    assert shown.count("no worker") == 1
    assert all("worker" not in info for info in terminal.json("queues"))
    terminal.ok("pause", "nowhere")
    assert "nowhere (paused, no worker)" in terminal.ok("queues")


def test_a_wait_in_vain_says_that_no_worker_serves_the_queue(terminal: Terminal) -> None:
    done = terminal.run("submit", "add", "--queue", "nowhere", "--wait", "0.1")
    task_id = done.out.strip()
    said = (
        f"dtq: task {task_id} is QUEUED and has no result yet{{}}; no live worker serves the "
        + ("queue nowhere\n")
    )
    assert (done.code, done.err) == (1, said.format(", after 0.1 s"))
    done = terminal.run("result", task_id)
    assert done.err == said.format(": give --wait SECONDS to wait for it")


def test_a_wait_in_vain_says_that_no_worker_knows_the_task(terminal: Terminal) -> None:
    terminal.start_worker(unknown_task_delay=60)
    task_id = terminal.submit("nobody_knows")
    eventually("it rests", lambda: terminal.client.get(task_id).releases)
    done = terminal.run("result", task_id, "--wait", "0.1")
    assert done.code == 1
    assert done.err.endswith("; no live worker of the queue default knows the task nobody_knows\n")
