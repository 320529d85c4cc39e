"""SAQ."""

from __future__ import annotations

import asyncio

import tally
from saq import Queue
from system import REDIS_URL, System


async def noop(ctx: object, *, text: str) -> int:
    return tally.tick()


async def numbered(ctx: object, *, text: int) -> int:
    return tally.started(text)


async def sleeper(ctx: object, *, text: float) -> None:
    tally.slept()
    await asyncio.sleep(text)


queue = Queue.from_url(REDIS_URL)
default = {"queue": queue, "functions": [noop, numbered, sleeper]}
fast = {**default, "concurrency": 100}


class OnSaq(System):
    name = "SAQ"
    package = "saq"
    setting = "concurrency 100, hiredis; many submissions at once with gather"

    async def open(self) -> None:
        await queue.connect()

    async def close(self) -> None:
        await queue.disconnect()

    async def submit(self, task: str, argument: object) -> None:
        await queue.enqueue(task, text=argument)

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        for first in range(0, len(arguments), 100):
            part = arguments[first : first + 100]
            await asyncio.gather(*(queue.enqueue(task, text=text) for text in part))

    def worker(self, processes: int) -> list[str]:
        return ["saq", "on_saq.fast", "--workers", str(processes), "--quiet"]

    def default_worker(self) -> list[str]:
        return ["saq", "on_saq.default", "--quiet"]


system = OnSaq()
