"""``dtq top`` as a real process, on a terminal and without one."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest

from cli.terminal import Terminal, eventually
from support.proxy import Proxy

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENTER = "\x1b[?1049h"
LEAVE = "\x1b[?1049l"
SHOW_CURSOR = "\x1b[?25h"


class Screen:
    """A terminal of 80 by 24 on which ``dtq top`` runs."""

    def __init__(self, terminal: Terminal, *options: str) -> None:
        self._ours, self._its = pty.openpty()
        self.resize(80, 24)
        self.modes = termios.tcgetattr(self._its)
        self._written = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dtq_cli.main", "top", "--interval", "0.1", *options],
            cwd=terminal.folder,
            env=terminal.environ | {"TERM": "xterm-256color"},
            stdin=self._its,
            stdout=self._its,
            stderr=self._its,
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def written(self) -> str:
        """Whatever was written so far."""
        while select.select([self._ours], [], [], 0)[0]:
            self._written += os.read(self._ours, 65_536).decode()
        return self._written

    def shows(self, pattern: str) -> str:
        """Wait for something that is written from now on; return the line."""
        self.written()
        self._written = ""

        def line() -> str | None:
            found = re.search(f".*{pattern}.*", CODES.sub("", self.written()))
            return found and found[0]

        shown: str = eventually(f"{pattern} is shown", line)
        return shown

    def end(self) -> int:
        """Wait for the end, reading on, as a terminal does; return the exit code."""
        eventually("it ends", lambda: (self.written(), self.process.poll())[1] is not None)
        self.written()
        return self.process.returncode

    def is_restored(self) -> bool:
        left = self._written.rindex(LEAVE) > self._written.rfind(ENTER)
        visible = self._written.rindex(SHOW_CURSOR) > self._written.rfind("\x1b[?25l")
        return left and visible and termios.tcgetattr(self._its) == self.modes

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._its)
        os.close(self._ours)


@pytest.fixture
def screen(terminal: Terminal) -> Iterator[Screen]:
    made = Screen(terminal)
    yield made
    made.close()


def test_a_submitted_task_appears_and_q_gives_the_terminal_back(
    terminal: Terminal, screen: Screen
) -> None:
    screen.shows(r"waiting 0 ")
    assert termios.tcgetattr(screen._its) != screen.modes
    terminal.submit("add", queue="mail")
    screen.shows(r"waiting 1 ")
    row = screen.shows(r"mail \(no")
    assert re.match(r"mail \(no \S+ +1 +0 +0 +0 +0 +0 +0\s", row + " ")
    screen.press("xq")
    assert screen.end() == 0
    assert screen.is_restored()
    assert "Traceback" not in screen.written()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_gives_the_terminal_back(screen: Screen, number: int, code: int) -> None:
    screen.shows("waiting 0 ")
    screen.process.send_signal(number)
    assert screen.end() == code
    assert screen.is_restored()
    assert "Traceback" not in screen.written()


def test_a_resized_terminal_is_drawn_anew(terminal: Terminal, screen: Screen) -> None:
    for n in range(30):
        terminal.submit("add", queue=f"queue-{n:02}")
    screen.shows("less busy")
    screen.resize(160, 50)
    screen.shows("queue-00 ")
    screen.resize(20, 5)
    screen.shows("oldest waiting .*…")
    screen.press("q")
    assert screen.end() == 0


def test_a_server_that_goes_away_is_shown_and_so_is_its_return(
    terminal: Terminal, redis_url: str
) -> None:
    with Proxy(redis_url) as proxy:
        screen = Screen(terminal, "--redis-url", proxy.url)
        try:
            screen.shows("waiting 0 ")
            proxy.go_away()
            screen.shows(r"as of \S+: Redis at redis://127\.0\.0\.1")
            proxy.come_back()
            terminal.submit("add")
            screen.shows("waiting 1 ")
            screen.press("q")
            assert screen.end() == 0
        finally:
            screen.close()


def test_json_is_one_object_a_line_with_rates(shop: Terminal) -> None:
    process = shop.start("top", "--json", "--interval", "0.5", "--count", "2")
    task_id = shop.submit("sleep", 3, queue="mail")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    first, last = map(json.loads, out.splitlines())
    assert 0 < first["over_seconds"] < 30
    assert last["at"] > first["at"]
    assert last["ended_per_second"] >= 0
    assert last["memory"]["used"] > 0
    assert last["leaders"]
    (mail,) = (queue for queue in last["queues"] if queue["queue"] == "mail")
    assert mail["tasks"]["RUNNING"] + mail["tasks"]["QUEUED"] == 1
    assert mail["paused_since"] is None
    assert last["tasks"]["RUNNING"] == sum(q["tasks"]["RUNNING"] for q in last["queues"])
    (worker,) = last["workers"]
    assert worker["concurrency"] == 8
    shop.client.cancel(task_id)


def test_json_goes_on_when_a_server_is_back(terminal: Terminal, redis_url: str) -> None:
    with Proxy(redis_url) as proxy:
        command = ("top", "--json", "--interval", "0.1", "--redis-url", proxy.url)
        process = terminal.start(*command)
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["tasks"]["QUEUED"] == 0
        proxy.go_away()
        assert process.stderr.readline().startswith("dtq: Redis at redis://127.0.0.1")
        terminal.submit("add")
        proxy.come_back()
        while json.loads(process.stdout.readline())["tasks"]["QUEUED"] != 1:
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_looking_on_and_on_leaves_no_mark(terminal: Terminal) -> None:
    terminal.ok("top", "--json", "--interval", "0.1", "--count", "2")
    assert terminal.keys() == {}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ([], "needs a terminal; for programs there is --json"),
        (["--count", "2"], "--count is for --json only"),
        (["--json", "--count", "0"], "--count 0 is out of range"),
        (["--json", "--interval", "0"], "--interval 0.0 is out of range"),
        (["--json", "--interval", "nan"], "--interval nan is out of range"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(
    terminal: Terminal, options: list[str], word: str
) -> None:
    done = terminal.run("top", *options)
    assert (done.code, done.out) == (2, "")
    assert word in done.err
    assert done.err.count("\n") == 1
