"""arq."""

from __future__ import annotations

import asyncio

import tally
from arq import create_pool
from arq.connections import RedisSettings
from system import REDIS_URL, System


async def noop(ctx: object, text: str) -> int:
    return tally.tick()


async def numbered(ctx: object, number: int) -> int:
    return tally.started(number)


async def sleeper(ctx: object, seconds: float) -> None:
    tally.slept()
    await asyncio.sleep(seconds)


class Default:
    functions = (noop, numbered, sleeper)
    redis_settings = RedisSettings.from_dsn(REDIS_URL)


class Fast:  # arq reads no inherited settings
    functions = Default.functions
    redis_settings = Default.redis_settings
    max_jobs = 100
    poll_delay = 0.01


class Arq(System):
    name = "arq"
    package = "arq"
    setting = "max_jobs 100, poll_delay 10 ms; one worker program for each process"
    alone = True

    async def open(self) -> None:
        self.pool = await create_pool(Default.redis_settings)

    async def close(self) -> None:
        await self.pool.aclose()

    async def submit(self, task: str, argument: object) -> None:
        await self.pool.enqueue_job(task, argument)

    def worker(self, processes: int) -> list[str]:
        return ["arq", "on_arq.Fast"]

    def default_worker(self) -> list[str]:
        return ["arq", "on_arq.Default"]


system = Arq()
