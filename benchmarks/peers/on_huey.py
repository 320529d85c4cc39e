"""Huey."""

from __future__ import annotations

import time

import tally
from huey import RedisHuey
from system import REDIS_URL, System

huey = RedisHuey("bench", url=REDIS_URL)


@huey.task()
def noop(text: str) -> int:
    return tally.tick()


@huey.task()
def numbered(number: int) -> int:
    return tally.started(number)


@huey.task()
def sleeper(seconds: float) -> None:
    tally.slept()
    time.sleep(seconds)


TASKS = {"noop": noop, "numbered": numbered, "sleeper": sleeper}


class OnHuey(System):
    name = "Huey"
    package = "huey"
    acknowledges = "before"
    setting = "one worker thread in each process: it has nothing to acknowledge with"

    async def submit(self, task: str, argument: object) -> None:
        TASKS[task](argument)

    def worker(self, processes: int) -> list[str]:
        kind = "thread" if processes == 1 else "process"
        return [*self.default_worker(), "--workers", str(processes), "--worker-type", kind]

    def default_worker(self) -> list[str]:
        return ["huey_consumer", "on_huey.huey", "--quiet"]


system = OnHuey()
