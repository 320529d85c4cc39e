"""dtq itself, in the same harness, with its default settings."""

from __future__ import annotations

import asyncio
import os

import tally
from system import REDIS_URL, System

from dtq import Client, task


@task
async def noop(text: str) -> int:
    return tally.tick()


@task
async def numbered(number: int) -> int:
    return tally.started(number)


@task
async def sleeper(seconds: float) -> None:
    tally.slept()
    await asyncio.sleep(seconds)


TASKS = {"noop": noop, "numbered": numbered, "sleeper": sleeper}


class OnDtq(System):
    name = "dtq"
    package = "dtq"
    setting = "defaults; submit_many"

    async def open(self) -> None:
        self.client = Client(REDIS_URL)

    async def close(self) -> None:
        self.client.close()

    async def submit(self, task: str, argument: object) -> None:
        self.client.submit(TASKS[task], argument)

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        self.client.submit_many(TASKS[task], [(argument,) for argument in arguments])

    def worker(self, processes: int) -> list[str]:
        return [*self.default_worker(), "--processes", str(processes)]

    def default_worker(self) -> list[str]:
        os.environ["DTQ_REDIS_URL"] = REDIS_URL
        os.environ["DTQ_LOG_LEVEL"] = "error"
        return ["dtq", "worker", "on_dtq"]


system = OnDtq()
