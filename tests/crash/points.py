"""Every failpoint of the product, and how a process is brought there and killed."""

from __future__ import annotations

import signal
from typing import NamedTuple


class Point(NamedTuple):
    """Where a process is killed, under load.

    Attributes:
        name: of the failpoint.
        nth: at which time it is killed, so that it is in the middle of its work.
        told: a signal that brings it there.
    """

    name: str
    nth: int = 1
    told: signal.Signals | None = None

    @property
    def armed(self) -> str:
        return f"{self.name}=kill@{self.nth}"


WORKER = [
    Point("beat.before", 3),
    Point("beat.after", 3),
    Point("claim.before", 3),
    Point("claim.after", 3),
    Point("wake.after"),
    Point("reclaim.before", 2),
    Point("reclaim.after", 2),
    Point("adopt.before"),
    Point("adopt.after"),
    Point("execute.before", 3),
    Point("execute.after", 3),
    Point("renew.before"),
    Point("renew.after"),
    Point("finish.before", 2),
    Point("finish.after", 2),
    Point("shutdown.before", told=signal.SIGTERM),
    Point("abandon.before", told=signal.SIGTERM),
    Point("abandon.after", told=signal.SIGTERM),
]

SCHEDULER = [
    Point("lead.before", 2),
    Point("lead.after", 2),
    Point("promote.before", 3),
    Point("promote.after", 3),
    Point("expire.before", 2),
    Point("expire.after", 2),
    Point("sweep.before"),
    Point("verify.before"),
    Point("verify.after"),
    Point("resign.before", told=signal.SIGINT),
]

FIRING = [Point("fire.before", 2), Point("fire.after", 2)]
"""Where only a recurring schedule brings a scheduler; see ``tests/scheduler/test_cron.py``."""

OPERATION = [
    Point("operation.before"),
    Point("operation.begun"),
    Point("operation.ran"),
    Point("operation.after"),
]
"""Where only a guarded operation brings a worker; see ``test_operation_killed.py``."""

SUPERVISOR = [
    Point("spawn.before", 2),
    Point("spawn.after", 2),
    Point("orders.after", 2),
    Point("abandon.before"),
    Point("abandon.after"),
]

CLIENT = [
    Point("submit.before", 3),
    Point("submit.after", 3),
    Point("cancel.before", 3),
    Point("cancel.after", 3),
]
