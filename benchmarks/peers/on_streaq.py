"""streaq."""

from __future__ import annotations

import asyncio
import os

import tally
from streaq import Worker
from system import REDIS_URL, System

worker: Worker = Worker(
    redis_url=REDIS_URL, concurrency=int(os.environ.get("BENCH_CONCURRENCY", "16"))
)


@worker.task(name="noop")
async def noop(text: str) -> int:
    return tally.tick()


@worker.task(name="numbered")
async def numbered(number: int) -> int:
    return tally.started(number)


@worker.task(name="sleeper")
async def sleeper(seconds: float) -> None:
    tally.slept()
    await asyncio.sleep(seconds)


TASKS = {"noop": noop, "numbered": numbered, "sleeper": sleeper}


class OnStreaq(System):
    name = "streaq"
    package = "streaq"
    setting = "concurrency 100; enqueue_many"

    async def open(self) -> None:
        await worker.__aenter__()

    async def close(self) -> None:
        await worker.__aexit__(None, None, None)

    async def submit(self, task: str, argument: object) -> None:
        await TASKS[task].enqueue(argument)

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        registered = TASKS[task]
        await worker.enqueue_many([registered.enqueue(text) for text in arguments])

    def worker(self, processes: int) -> list[str]:
        os.environ["BENCH_CONCURRENCY"] = "100"
        return [*self.default_worker(), "--workers", str(processes)]

    def default_worker(self) -> list[str]:
        return ["streaq", "run", "on_streaq:worker"]


system = OnStreaq()
