"""What tables look like on a real terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from cli.terminal import Terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(terminal: Terminal, columns: int, *command: str) -> str:
    """Run a command on a terminal of so many columns, and return all that it has written there."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "dtq_cli.main", *command],
        cwd=terminal.folder,
        env=terminal.environ | {"TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    written = b""
    while part := read(ours):
        written += part
    os.close(ours)
    assert process.wait(20) == 0, written
    return written.decode().replace("\r\n", "\n")


def read(fd: int) -> bytes:
    try:
        return os.read(fd, 65_536)
    except OSError:  # Linux: the other side is closed
        return b""


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit_and_ids_are_never_cut(terminal: Terminal, columns: int) -> None:
    long = "a_rather_long_name_for_a_task_that_makes_reports_every_morning"
    ids = [
        terminal.submit(long, queue="reports-for-customers", band="critical"),
        terminal.submit("short"),
        terminal.submit("cancelled"),
    ]
    terminal.client.cancel(ids[-1], "\x1b[31m\u202etwo\nlines [bold]" + "x" * 100)
    for command in ("list", "queues", "stats", "settings", "workers"):
        shown = COLOUR.sub("", on_terminal(terminal, columns, command))
        assert max(map(len, shown.splitlines())) <= columns
        assert "\x1b" not in shown
    listed = on_terminal(terminal, columns, "list")
    assert COLOUR.search(listed)
    assert [line[:32] for line in COLOUR.sub("", listed).splitlines()[1:]] == ids[::-1]
    status = COLOUR.sub("", on_terminal(terminal, columns, "status", ids[-1]))
    assert all(c.isprintable() or c == "\n" for c in status)
    assert "[bold]" in status
    events = on_terminal(terminal, columns, "events")
    assert all(task_id in events for task_id in ids)


def test_no_colours_where_they_are_not_wanted(terminal: Terminal) -> None:
    terminal.submit("add")
    terminal.environ["NO_COLOR"] = "1"
    task_id, _ = on_terminal(terminal, 80, "list").splitlines()[1].split(maxsplit=1)
    assert len(COLOUR.sub("", task_id)) == 32
    assert not re.search(r"\x1b\[3\dm", on_terminal(terminal, 80, "list"))
