"""Whatever tasks hold, a terminal is shown printable text, and a log line stays one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.terminal import Terminal, eventually

EVIL = "\x1b[31mred\x1b]0;title\x07\r\nnext\u202eback\x00\x9b2J[bold]markup[/bold]"
FORBIDDEN = set("\x1b\x07\r\x00\u202e\x9b")


@pytest.fixture(scope="module")
def hostile(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A deployment that holds hostile text in every place there is."""
    made = Terminal(tmp_path_factory.mktemp("hostile"), redis_url)
    worker = made.start_worker()
    ended = [
        made.submit("fail", EVIL, max_attempts=1, idempotency_key="k'\"<b>"),
        made.submit("echo", {EVIL: [EVIL]}),
    ]
    for task_id in ended:
        made.ended(task_id)
    waiting = made.submit("echo", EVIL, delay=600)
    made.client.cancel(waiting, EVIL)
    start = made.prefix
    made.raw.hset(f"{start}:task:{ended[1]}", "progress", json.dumps(EVIL))
    made.raw.hset(f"{start}:task:{ended[1]}", "worker", EVIL)
    made.raw.hset(
        f"{start}:task:{'a' * 32}", mapping={"status": "QUEUED", "queue": EVIL, "spec": EVIL}
    )
    made.raw.xadd(f"{start}:events", {"type": EVIL, "id": EVIL, "queue": EVIL, "reason": EVIL})
    made.raw.xadd(f"{start}:dlq", {"id": EVIL, "queue": EVIL, "reason": EVIL})
    made.raw.xadd(f"{start}:audit", {"action": EVIL, "who": EVIL, "reason": EVIL, "scope": EVIL})
    made.raw.hset(f"{start}:queues", EVIL, "{}")
    made.raw.hset(f"{start}:cron", EVIL, EVIL)
    made.raw.zadd(f"{start}:workers", {EVIL: 1})
    made.raw.hset(f"{start}:worker:{EVIL}", mapping={"host": EVIL, "pid": 1, "seen_ms": 1})
    made.failed, made.echoed = ended[0], ended[1]
    yield made
    assert worker.poll() is None
    made.close()


LOOKING = [
    *(["list"], ["queues"], ["workers"], ["workers", "--tasks"], ["stats"], ["events"], ["audit"]),
    *(["audit", "--check"], ["verify"], ["dlq", "list"], ["cron", "list"], ["settings"]),
    *(
        ["status", "FAILED"],
        ["attempts", "FAILED"],
        ["result", "FAILED"],
        ["dlq", "show", "FAILED"],
    ),
    *(["status", "ECHOED"], ["result", "ECHOED"], ["top", "--json", "--count", "1"]),
]


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_o1_no_command_lets_a_control_character_reach_the_terminal(
    command: list[str], hostile: Terminal
) -> None:
    ids = {"FAILED": hostile.failed, "ECHOED": hostile.echoed}
    words = [ids.get(word, word) for word in command]
    for form in ([], ["--json"]) if "--json" not in words else ([],):
        done = hostile.run(*words, *form)
        assert done.code in {0, 1}
        assert "bug of dtq" not in done.err
        for text in (done.out, done.err):
            assert not FORBIDDEN & set(text), form
        if form:
            json.loads(done.out or "null")


def test_o1_a_log_line_stays_one_line(redis_url: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, redis_url, log_level="debug")
    process = terminal.start_worker()
    try:
        task_id = terminal.submit("fail", EVIL, max_attempts=1)
        eventually("its end", lambda: terminal.client.get(task_id).status.terminal)
        process.terminate()
        out, err = process.communicate(timeout=20)
        assert not FORBIDDEN & set(out + err)
        assert all(json.loads(line) for line in err.splitlines() if line.startswith("{"))
    finally:
        terminal.close()
