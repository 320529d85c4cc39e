"""A supervisor whose first children are armed with failpoints: the arguments, one for each.

An empty argument is a child without any. The settings come from the environment.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from dtq_core.logs import configure
from dtq_core.settings import load
from dtq_worker.supervisor import Supervisor

_spawn = asyncio.create_subprocess_exec


def arm(failpoints: list[str]) -> None:
    """Give each process that is started from now on its failpoints, as long as there are some."""

    async def spawn(*args: Any, **kwargs: Any) -> asyncio.subprocess.Process:
        armed = failpoints.pop(0) if failpoints else ""
        return await _spawn(*args, env={**os.environ, "DTQ_FAILPOINTS": armed}, **kwargs)

    asyncio.create_subprocess_exec = spawn  # type: ignore[assignment]


def main() -> None:
    settings = load()
    configure(settings)
    arm(sys.argv[1:])
    sys.exit(asyncio.run(Supervisor(settings, ["crash.handlers"]).run()))


if __name__ == "__main__":
    main()
