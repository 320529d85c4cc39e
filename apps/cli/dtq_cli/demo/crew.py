"""The worker processes of the demo: ``dtq worker``, as anyone would start it, and a kill."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dtq_cli.demo import handlers
from dtq_cli.demo.journal import read_journal
from dtq_core import reads
from dtq_core.clock import mono_s
from dtq_core.settings import Settings
from dtq_core.store import Store

COMMAND = (sys.executable, "-m", "dtq_cli.main", "worker", handlers.__name__)
_STOP_GRACE_S = 5.0


class Crew:
    """A supervisor with its worker processes, in a process group of its own."""

    def __init__(self, settings: Settings, log: Path) -> None:
        """Start them.

        Args:
            settings: for all of them; nothing else decides what they do.
            log: where their log lines go.
        """
        self.log = log
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                COMMAND,
                env=_environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        """Whether the supervisor is there."""
        return self._process.poll() is None

    def workers(self, store: Store) -> list[int]:
        """Return the process ids of the live workers, as they say it in Redis."""
        keys = store.partitions.all[0]
        names = store.read(reads.worker_ids(keys))
        pids = [worker.pid for worker in store.read(reads.workers(keys, names))]
        return sorted(pid for pid in pids if self._is_ours(pid))

    def _is_ours(self, pid: int) -> bool:
        """Whether a process is of this crew; its number may long be another's."""
        try:
            return os.getpgid(pid) == self._process.pid
        except ProcessLookupError:
            return False

    def last_words(self) -> str:
        """The last log line."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return lines[-1] if lines else "(it said nothing)"

    def stop(self) -> None:
        """Stop all in order, and leave no process behind in any case."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_GRACE_S)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _environment(settings: Settings) -> dict[str, str]:
    """This environment, with every setting of dtq given, so that none comes from elsewhere."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DTQ_")}
    given = {name: value for name, value in asdict(settings).items() if value is not None}
    return clean | {f"DTQ_{name.upper()}": str(value) for name, value in given.items()}


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker that was killed.

    Attributes:
        pid: its process id.
        at_s: when, monotonic.
        after: how many tasks had ended by then.
    """

    pid: int
    at_s: float
    after: int


def kill_a_busy_one(pids: Sequence[int], journal: Path, ended: int) -> Kill | None:
    """Kill the first worker that is in the middle of a task; None where none is.

    It is frozen before it is looked at: what the journal says of it is then still so when it dies.
    """
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            if any(run.pid == pid and not run.end for run in read_journal(journal)):
                os.kill(pid, signal.SIGKILL)
                return Kill(pid, mono_s(), ended)
            os.kill(pid, signal.SIGCONT)
    return None
