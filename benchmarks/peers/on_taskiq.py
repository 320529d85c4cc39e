"""taskiq with the broker on Redis Streams."""

from __future__ import annotations

import asyncio

import tally
from system import REDIS_URL, System
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

results: RedisAsyncResultBackend = RedisAsyncResultBackend(REDIS_URL)
broker = RedisStreamBroker(REDIS_URL).with_result_backend(results)


@broker.task("noop")
async def noop(text: str) -> int:
    return tally.tick()


@broker.task("numbered")
async def numbered(number: int) -> int:
    return tally.started(number)


@broker.task("sleeper")
async def sleeper(seconds: float) -> None:
    tally.slept()
    await asyncio.sleep(seconds)


TASKS = {"noop": noop, "numbered": numbered, "sleeper": sleeper}


class OnTaskiq(System):
    name = "taskiq"
    package = "taskiq"
    setting = "stream broker, max-async-tasks 100, max-prefetch 100, no-parse; gather for many"

    async def open(self) -> None:
        await broker.startup()

    async def close(self) -> None:
        await broker.shutdown()

    async def submit(self, task: str, argument: object) -> None:
        await TASKS[task].kiq(argument)

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        for first in range(0, len(arguments), 100):
            part = arguments[first : first + 100]
            await asyncio.gather(*(TASKS[task].kiq(text) for text in part))

    def worker(self, processes: int) -> list[str]:
        many = ["--max-async-tasks", "100", "--max-prefetch", "100", "--no-parse"]
        return [*self.default_worker(), "--workers", str(processes), *many]

    def default_worker(self) -> list[str]:
        return ["taskiq", "worker", "on_taskiq:broker", "--log-level", "ERROR"]


system = OnTaskiq()
