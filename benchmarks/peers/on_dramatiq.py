"""Dramatiq."""

from __future__ import annotations

import os
import time

import dramatiq
import tally
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from system import REDIS_URL, System

broker = RedisBroker(url=REDIS_URL)
broker.add_middleware(Results(backend=RedisBackend(url=REDIS_URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def noop(text: str) -> int:
    return tally.tick()


@dramatiq.actor(store_results=True)
def numbered(number: int) -> int:
    return tally.started(number)


@dramatiq.actor(store_results=True)
def sleeper(seconds: float) -> None:
    tally.slept()
    time.sleep(seconds)


TASKS = {"noop": noop, "numbered": numbered, "sleeper": sleeper}


class OnDramatiq(System):
    name = "Dramatiq"
    package = "dramatiq"
    setting = "Results in Redis, 2 threads in each process (faster here than 8), prefetch 100"

    async def submit(self, task: str, argument: object) -> None:
        TASKS[task].send(argument)

    def worker(self, processes: int) -> list[str]:
        os.environ["dramatiq_queue_prefetch"] = "100"  # noqa: SIM112 - its own spelling
        return [*self.default_worker(), "--processes", str(processes), "--threads", "2"]

    def default_worker(self) -> list[str]:
        return ["dramatiq", "on_dramatiq"]


system = OnDramatiq()
