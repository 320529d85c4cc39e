"""A scheduler alone, with the settings of the environment."""

from __future__ import annotations

import asyncio

from dtq_core.settings import load
from dtq_scheduler import Scheduler

if __name__ == "__main__":
    asyncio.run(Scheduler(load()).run())
