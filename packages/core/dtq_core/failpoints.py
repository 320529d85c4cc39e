"""Named points at which a test can kill, pause or break a process.

``reach("finish.before")`` does nothing unless ``DTQ_FAILPOINTS`` names the point, as in
``finish.before=kill`` or ``claim.after=pause:2.5,finish.before=raise@3``: at the third time, raise.

=========  ===========================================
kill       SIGKILL to this very process
stop       SIGSTOP to it; whoever waits for that has it exactly there
pause:S    sleep S seconds, holding the calling thread
raise      raise :class:`FailpointError`
=========  ===========================================
"""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass

from dtq_core.errors import SettingsError

_POINT = re.compile(
    r"(?P<name>[a-z_.]+)=(?P<action>kill|stop|pause:\d+(\.\d+)?|raise)(@(?P<count>[1-9]\d*))?"
)


class FailpointError(RuntimeError):
    """Raised where a test asked for it."""


@dataclass
class _Failpoint:
    action: str
    seconds: float
    countdown: int

    def reach(self, name: str) -> None:
        self.countdown -= 1
        if self.countdown != 0:
            return
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.action == "pause":
            time.sleep(self.seconds)
        else:
            raise FailpointError(f"failpoint {name}")


def _parse(text: str) -> dict[str, _Failpoint]:
    points: dict[str, _Failpoint] = {}
    for part in filter(None, text.split(",")):
        found = _POINT.fullmatch(part)
        if found is None:
            raise SettingsError(f"DTQ_FAILPOINTS: {part!r} is not name=kill|stop|pause:S|raise[@N]")
        action, _, seconds = found["action"].partition(":")
        points[found["name"]] = _Failpoint(action, float(seconds or 0), int(found["count"] or 1))
    return points


_points = _parse(os.environ.get("DTQ_FAILPOINTS", ""))


def reach(name: str) -> None:
    """Do what a test asked for at this point; without a test, nothing."""
    if _points and (point := _points.get(name)) is not None:
        point.reach(name)
