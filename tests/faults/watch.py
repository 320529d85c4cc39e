"""What a program and its children use and say while something is wrong with their server."""

from __future__ import annotations

import os
import time

from support.programs import Program

MOST_CPU = 0.05
"""Of one core, for each process."""
MOST_LINES_A_SECOND = 2.0
"""From each process."""

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_FIRST_S = 1.0
"""What is still worked off when a fault begins: as if it had lasted longer by this."""
_FIRST_LINES = 5
"""Each loop of a process says once that something is wrong."""


class Watch:
    """Measures from now on."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._pids = [program.pid, *program.children()]
        self._began_s = time.monotonic()
        self._used_s = self._used()
        self._lines = self._said()

    def check(self) -> None:
        """Fail if any process has been busy or talkative since."""
        self.check_silence()
        lasted_s = time.monotonic() - self._began_s + _FIRST_S
        for pid, used_s in self._used().items():
            share = (used_s - self._used_s[pid]) / lasted_s
            assert share <= MOST_CPU, f"process {pid} used {share:.1%} of a core"

    def check_silence(self) -> None:
        """Fail if they have said too much."""
        lasted_s = time.monotonic() - self._began_s
        new = self._said()[len(self._lines) :]
        most = len(self._pids) * (MOST_LINES_A_SECOND * lasted_s + _FIRST_LINES)
        assert len(new) <= most, f"{len(new)} lines in {lasted_s:.1f} s:\n" + "\n".join(new)

    def _said(self) -> list[str]:
        # A handler that fails is no fault of the server; such lines have a limit of their own.
        lines = self._program.log.read_text().splitlines()
        return [line for line in lines if "attempt failed" not in line]

    def _used(self) -> dict[int, float]:
        return {pid: _cpu_s(pid) for pid in self._pids}


def _cpu_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
