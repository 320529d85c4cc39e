"""A program with all that it started: its processor time, and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

TICKS_S = os.sysconf("SC_CLK_TCK")


def members(pid: int) -> list[int]:
    """The process and its descendants; those that ended meanwhile are left out."""
    found = [pid]
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text("ascii").split():
                found += members(int(child))
    return found


def cpu_s(pid: int) -> float:
    """Processor time of a process and its descendants, also of ended ones it waited for."""
    return sum(_cpu_s_of_one(member) for member in members(pid))


def _cpu_s_of_one(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11:15]) / TICKS_S


def stop(process: subprocess.Popen[bytes], patience_s: float = 5) -> None:
    """Ask to end; after the patience, kill the whole tree."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and its descendants at once, as a power cut would."""
    for member in members(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    process.wait()
