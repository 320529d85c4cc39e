"""pydocket."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import tally
from docket import Docket, Worker
from system import REDIS_URL, System


async def noop(text: str) -> int:
    return tally.tick()


async def numbered(number: int) -> int:
    return tally.started(number)


async def sleeper(seconds: float) -> None:
    tally.slept()
    await asyncio.sleep(seconds)


tasks = [noop, numbered, sleeper]
BY_NAME = {task.__name__: task for task in tasks}


class OnDocket(System):
    name = "pydocket"
    package = "pydocket"
    setting = (
        "concurrency 50 (at 100 two executions hung), check interval 5 ms; add_many; "
        "one worker program for each process"
    )
    alone = True

    async def open(self) -> None:
        self.docket = Docket("bench", REDIS_URL)
        await self.docket.__aenter__()

    async def close(self) -> None:
        await self.docket.__aexit__(None, None, None)

    async def submit(self, task: str, argument: object) -> None:
        await self.docket.add(BY_NAME[task])(argument)

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        now = datetime.now(UTC)
        calls = [self.docket.call(BY_NAME[task], now)(argument) for argument in arguments]
        await self.docket.add_many(calls)

    def worker(self, processes: int) -> list[str]:
        return ["python", __file__]

    def default_worker(self) -> list[str]:
        where = ["--docket", "bench", "--url", REDIS_URL]
        return ["docket", "worker", "--tasks", "on_pydocket:tasks", *where, *QUIET]


QUIET = ["--logging-level", "ERROR"]

system = OnDocket()


def work() -> None:
    """Be a fast worker: the command line takes no interval shorter than a second."""
    interval = timedelta(milliseconds=5)
    running = Worker.run(
        "bench",
        REDIS_URL,
        concurrency=50,
        minimum_check_interval=interval,
        tasks=["on_pydocket:tasks"],
    )
    asyncio.run(running)


if __name__ == "__main__":
    work()
