"""Runs a supervisor with the settings of the environment."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from dtq_core.errors import DtqError
from dtq_core.logs import configure
from dtq_core.settings import load
from dtq_worker.supervisor import Supervisor


def supervise(modules: Sequence[str]) -> int:
    """Return the exit code, as the command would."""
    settings = load()
    configure(settings)
    try:
        return asyncio.run(Supervisor(settings, modules).run())
    except DtqError as error:
        print(f"dtq worker: {error}", file=sys.stderr)
        return 1
