"""The points at which tests hurt a process do what they are told, and nothing otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dtq_core import failpoints
from dtq_core.errors import SettingsError


def _run(points: str, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"from dtq_core.failpoints import reach\n{code}"],
        env={**os.environ, "DTQ_FAILPOINTS": points},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_a_point_that_nobody_named_does_nothing() -> None:
    failpoints.reach("finish.before")
    assert _run("other=kill", "reach('finish.before')").returncode == 0


def test_kill_ends_the_process_on_the_spot() -> None:
    ended = _run("here=kill", "reach('here')\nprint('alive')")
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, "")


def test_stop_holds_the_process_exactly_there() -> None:
    code = "print('before', flush=True); reach('here'); print('after')"
    with subprocess.Popen(
        [sys.executable, "-c", f"from dtq_core.failpoints import reach\n{code}"],
        env={**os.environ, "DTQ_FAILPOINTS": "here=stop"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WSTOPSIG(status) == signal.SIGSTOP
        process.send_signal(signal.SIGCONT)
        assert process.communicate()[0].split() == ["before", "after"]


def test_a_count_waits_for_the_nth_time_and_acts_once() -> None:
    code = (
        "for n in range(4):\n"
        "    try: reach('here'); print(n)\n"
        "    except RuntimeError: print('raised')"
    )
    assert _run("here=raise@3", code).stdout.split() == ["0", "1", "raised", "3"]


def test_pause_holds_the_calling_thread() -> None:
    code = (
        "import time\nbegin = time.monotonic()\n"
        "reach('here')\nprint(time.monotonic() - begin >= 0.2)"
    )
    assert _run("here=pause:0.2", code).stdout.strip() == "True"


@pytest.mark.parametrize(
    "text",
    [
        "here",
        "here=explode",
        "=",
        "here=kill,there",
        "=kill",
        "here=pause",
        "here=pause:x",
        "here=raise@x",
        "here=raise@0",
        "here=kill:3",
    ],
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="DTQ_FAILPOINTS"):
        failpoints._parse(text)
