"""Runs a supervisor with the settings of the environment; the modules are the arguments."""

from __future__ import annotations

import asyncio
import sys

from dtq_core.errors import DtqError
from dtq_core.logs import configure
from dtq_core.settings import load
from dtq_worker.supervisor import Supervisor


def main() -> int:
    settings = load()
    configure(settings)
    try:
        return asyncio.run(Supervisor(settings, sys.argv[1:]).run())
    except DtqError as error:
        print(f"dtq worker: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
