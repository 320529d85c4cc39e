"""Ctrl-C, outputs that go away, and errors of our own."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from cli.terminal import Terminal, stop
from dtq_cli import main
from dtq_core.settings import Settings


@pytest.mark.parametrize(
    "command",
    [["submit", "add", "--wait", "60"], ["events", "--follow"]],
    ids=["waiting", "following"],
)
def test_ctrl_c_is_quiet(terminal: Terminal, command: list[str]) -> None:
    terminal.submit("add")
    process = terminal.start(*command)
    assert process.stdout is not None
    assert process.stdout.readline()
    done = stop(process, signal.SIGINT)
    assert (done.code, done.err) == (130, "")


_INTERRUPTED_WHERE_NOBODY_CATCHES = """
import os, signal, sys
from dtq_cli import main
from dtq_core.store import Store

class Careless:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(10))

read, calls = Store.read, 0

def losing(*arguments, **named):
    global calls
    calls += 1
    if calls == 5:
        Careless()
    return read(*arguments, **named)

Store.read = losing
sys.argv = ["dtq", "events", "--follow"]
main.main()
"""


def test_ctrl_c_in_the_middle_of_a_finalizer_is_not_lost(terminal: Terminal) -> None:
    terminal.submit("add")
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHERE_NOBODY_CATCHES],
        cwd=terminal.folder,
        env=terminal.environ,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert (done.returncode, done.stderr) == (130, "")
    assert " SUBMITTED " in done.stdout


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["events"], ["--help"]])
def test_a_reader_that_has_seen_enough_is_no_error(terminal: Terminal, command: list[str]) -> None:
    terminal.submit("add")
    process = terminal.start(*command)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(20) == 1


def test_following_ends_with_its_reader(terminal: Terminal) -> None:
    terminal.submit("add")
    process = terminal.start("events", "--follow", "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    terminal.submit("add")
    assert process.stderr.read() == ""
    assert process.wait(20) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a thing of Linux")
@pytest.mark.parametrize("command", [["list"], ["list", "--json"]])
def test_output_that_cannot_be_written_is_an_error(terminal: Terminal, command: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dtq_cli.main", *command],
            cwd=terminal.folder,
            env=terminal.environ,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (1, "dtq: No space left on device\n")


def test_an_error_of_our_own_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Settings:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("dtq_core.settings.resolve", fail)
    assert main.run(["status", "0" * 32]) == 1
    err = capsys.readouterr().err
    assert err.startswith("dtq: this is a bug of dtq: RuntimeError: two\\nlines")
    assert err.count("\n") == 1
