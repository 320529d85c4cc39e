"""Runs a supervisor with the settings of the environment, as the command would.

Its arguments: the modules with the handlers, separated by commas; then failpoints, one argument for
each of its first children. An empty one is a child without any.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from dtq_core.errors import DtqError
from dtq_core.logs import configure
from dtq_core.settings import load
from dtq_worker.supervisor import Supervisor

_spawn = asyncio.create_subprocess_exec


def arm(failpoints: list[str]) -> None:
    """Give each process that is started from now on its failpoints, as long as there are some."""

    async def spawn(*args: Any, **kwargs: Any) -> asyncio.subprocess.Process:
        armed = failpoints.pop(0) if failpoints else ""
        return await _spawn(*args, env={**os.environ, "DTQ_FAILPOINTS": armed}, **kwargs)

    asyncio.create_subprocess_exec = spawn


def main() -> int:
    settings = load()
    configure(settings)
    modules, *failpoints = sys.argv[1:]
    arm(failpoints)
    try:
        return asyncio.run(Supervisor(settings, modules.split(",")).run())
    except DtqError as error:
        print(f"dtq worker: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
