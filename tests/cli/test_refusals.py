"""What is refused: one line on stderr, the exit code, and nothing written."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import hiredis
import pytest

from cli.terminal import Done, Terminal

WRONG_USAGE = 2
REFUSED = 1


def check_refusal(done: Done, code: int, *words: str) -> None:
    assert done.code == code, done
    assert done.out == ""
    assert done.err.startswith("dtq: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    assert "Input should" not in done.err
    assert "Value error" not in done.err
    for word in words:
        assert word in done.err


SUBMISSIONS = {
    "arguments that are no JSON": (["--args", "[1"], "--args is not valid JSON", "'[42, "),
    "arguments that are no list": (["--args", "42"], "a JSON list: write --args '[42]'"),
    "an object for a list": (["--args", '{"a": 1}'], "a JSON list"),
    "NaN": (["--args", "[NaN]"], "--args is not valid JSON"),
    "a number that no float can hold": (["--args", "[1e999]"], "--args"),
    "arguments nested too deep": (["--args", "[" * 200 + "]" * 200], "100 levels deep"),
    "arguments that are no text": (["--args", '["\udcff"]'], "--args is not valid JSON"),
    "a list for an object": (["--kwargs", "[1]"], "a JSON object"),
    "a bad queue name": (["--queue", "two words"], "queue name 'two words' is not allowed"),
    "a queue name that attacks a key": (["--queue", "a:b*\n"], "queue name 'a:b*\\n'"),
    "an unknown band": (["--band", "urgent"], "use one of critical, high, normal, low"),
    "a negative delay": (["--delay", "-1"], "delay -1.0 is out of range"),
    "an infinite delay": (["--delay", "inf"], "delay inf is out of range"),
    "a delay that is no number": (["--delay", "nan"], "delay nan is out of range"),
    "a delay in words": (
        ["--delay", "soon"],
        "dtq: --delay takes a number (see: dtq submit --help)",
    ),
    "a negative TTL": (["--ttl", "-1"], "ttl -1.0 is out of range"),
    "no attempts": (["--max-attempts", "0"], "max_attempts 0 is out of range"),
    "half an attempt": (["--max-attempts", "1.5"], "dtq: --max-attempts takes a whole number ("),
    "no time": (["--timeout", "0"], "timeout 0"),
    "a bad idempotency key": (["--idempotency-key", "a b"], "idempotency key 'a b'"),
    "an endless wait": (["--wait", "inf"], "--wait inf is out of range"),
    "an unknown option": (["--prio", "high"], "No such option: --prio"),
    "no such prefix": (["--prefix", "a:b"], "DTQ_PREFIX 'a:b' is not allowed"),
    "no partitions": (["--partitions", "0"], "DTQ_PARTITIONS 0 is out of range"),
}


@pytest.mark.parametrize("case", SUBMISSIONS)
def test_a_bad_submission(terminal: Terminal, case: str) -> None:
    arguments, *words = SUBMISSIONS[case]
    check_refusal(terminal.run("submit", "add", *arguments), WRONG_USAGE, *words)
    assert terminal.keys() == {}


def test_a_bad_task_name(terminal: Terminal) -> None:
    done = terminal.run("submit", "no\x1b[31m such")
    check_refusal(done, WRONG_USAGE, "task name 'no\\x1b[31m such' is not allowed")
    assert terminal.keys() == {}


def test_a_payload_that_is_too_large(terminal: Terminal) -> None:
    done = terminal.run("submit", "add", "--args", "-", stdin=f'["{"x" * 1_048_576}"]')
    check_refusal(done, WRONG_USAGE, "the payload of add is 1,048,585 bytes", "pass a reference")
    assert terminal.keys() == {}


COMMANDS = {
    "an unknown command": (["frobnicate"], "No such command 'frobnicate'"),
    "a mistyped command": (["stat"], "Did you mean 'stats', 'status'? (see: dtq --help)"),
    "no task": (["status"], "Missing argument 'ID' (see: dtq status --help)"),
    "no task id": (["status", "42"], "'42' is not a task id"),
    "an unknown status": (
        ["list", "--status", "LOST"],
        "dtq: --status 'LOST' is not one of scheduled, queued, ",
    ),
    "a limit of nothing": (["list", "--limit", "0"], "--limit 0 is out of range"),
    "a limit of too much": (["events", "--limit", "1000000"], "--limit 1000000 is out of range"),
    "a queue with a bad name": (["list", "--queue", "*"], "queue name '*' is not allowed"),
    "a negative wait": (["result", "0" * 32, "--wait", "-1"], "--wait -1.0 is out of range"),
    "no module": (["worker"], "Missing argument 'MODULE' (see: dtq worker --help)"),
    "a worker of a bad queue": (["worker", "handlers", "-q", "a b"], "queue name 'a b'"),
    "a worker without slots": (["worker", "handlers", "-c", "0"], "DTQ_CONCURRENCY 0"),
    "a URL of another kind": (["list", "--redis-url", "http://x"], "is not a Redis URL"),
    "a URL without its kind": (["list", "--redis-url", "localhost:6379"], "is not a Redis URL"),
    "half a URL": (["list", "--redis-url", "redis://["], "DTQ_REDIS_URL"),
    "a URL for later": (["list", "--redis-url", "redis+cluster://x"], "not supported yet"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_bad_command(terminal: Terminal, case: str) -> None:
    arguments, *words = COMMANDS[case]
    check_refusal(terminal.run(*arguments), WRONG_USAGE, *words)
    assert terminal.keys() == {}


def test_a_wrong_setting_names_its_variable(terminal: Terminal) -> None:
    done = terminal.run("list", concurrency="many")
    check_refusal(done, WRONG_USAGE, "DTQ_CONCURRENCY='many' is not a whole number")


def test_a_broken_settings_file_is_named(terminal: Terminal) -> None:
    file = terminal.folder / "dtq.toml"
    file.write_text("prefix =")
    check_refusal(terminal.run("list"), WRONG_USAGE, str(file), "is not valid TOML")
    file.write_text("prefiks = 'shop'")
    check_refusal(terminal.run("settings"), WRONG_USAGE, "there is no setting 'prefiks'")


def test_a_password_is_not_shown(terminal: Terminal) -> None:
    for url in ("redis://me:secret@127.0.0.1:1", "me:secret@127.0.0.1:1", "redis://:a/secret@["):
        done = terminal.run("list", "--redis-url", url)
        assert done.code in {REFUSED, WRONG_USAGE}
        assert "secret" not in done.out + done.err


@pytest.mark.parametrize(
    "command",
    [["list"], ["submit", "add"], ["events", "--follow"], ["scheduler"], ["worker", "handlers"]],
    ids=lambda command: str(command[0]),
)
def test_a_server_that_is_not_there(terminal: Terminal, command: list[str]) -> None:
    started = time.monotonic()
    done = terminal.run(*command, "--redis-url", "redis://127.0.0.1:1", retry_timeout=30)
    check_refusal(done, REFUSED, "Redis at redis://127.0.0.1:1", "connect")
    assert time.monotonic() - started < 10


def test_a_server_that_does_not_answer(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}"
        check_refusal(terminal.run("list", "--redis-url", url, connect_timeout=0.5), REFUSED, url)


@pytest.mark.parametrize("command", [["list"], ["submit", "add"], ["worker", "handlers"]])
def test_no_server_is_named(terminal: Terminal, command: list[str]) -> None:
    del terminal.environ["DTQ_REDIS_URL"]
    check_refusal(terminal.run(*command), REFUSED, "set DTQ_REDIS_URL", "dtq dev")


@pytest.fixture
def old_server() -> Iterator[tuple[str, list[bytes]]]:
    """A server that says it is Redis 5, and the commands that it was sent."""
    commands: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(listener, commands))
    thread.start()
    yield f"redis://127.0.0.1:{listener.getsockname()[1]}", commands
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def serve(listener: socket.socket, commands: list[bytes]) -> None:
    info = b"redis_version:5.0.14\r\n"
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        reader = hiredis.Reader()
        with closing(connection):
            while data := connection.recv(65_536):
                reader.feed(data)
                while (command := reader.gets()) is not False:
                    commands.append(command[0])
                    answer = b"$%d\r\n%s\r\n" % (len(info), info)
                    connection.sendall(answer if command[0] == b"INFO" else b"+OK\r\n")


@pytest.mark.parametrize("command", [["list"], ["submit", "add"], ["worker", "handlers"]])
def test_a_server_that_is_too_old(
    terminal: Terminal, old_server: tuple[str, list[bytes]], command: list[str]
) -> None:
    url, commands = old_server
    done = terminal.run(*command, "--redis-url", url)
    check_refusal(done, REFUSED, "Redis 5.0.14 is too old", "6.2")
    assert set(commands) <= {b"CLIENT", b"INFO"}


@pytest.mark.parametrize("command", [["list"], ["submit", "add"], ["worker", "handlers"]])
def test_another_number_of_partitions(terminal: Terminal, command: list[str]) -> None:
    terminal.submit("add", 1, 2)
    before = terminal.keys()
    done = terminal.run(*command, "--partitions", "3")
    check_refusal(done, REFUSED, "set DTQ_PARTITIONS=1")
    assert terminal.keys() == before


MODULES = {
    "that is not there": ("", "cannot import 'mine': ModuleNotFoundError"),
    "that raises": ("raise ValueError('two\\nlines')", "cannot import 'mine': ValueError: two"),
    "with a mistake": ("def (", "cannot import 'mine': SyntaxError"),
    "that ends the program": ("import sys; sys.exit(0)", "cannot import 'mine': SystemExit"),
    "without tasks": ("x = 1", "no task is defined in mine: decorate one with @task"),
    "with two tasks of one name": (
        "from dtq import task\n@task(name='a')\ndef b(): ...\n@task(name='a')\ndef c(): ...",
        "two functions want to be task 'a'",
    ),
}


@pytest.mark.parametrize("case", MODULES)
def test_a_module(terminal: Terminal, case: str) -> None:
    source, *words = MODULES[case]
    if source:
        (terminal.folder / "mine.py").write_text(source)
    done = terminal.run("worker", "mine", "-p", "2", "--no-scheduler")
    check_refusal(done, REFUSED, *words)
    assert set(terminal.keys()) <= {f"{terminal.prefix}:meta".encode()}
