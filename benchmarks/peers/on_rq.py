"""RQ."""

from __future__ import annotations

import time

import tally
from redis import Redis
from rq import Queue
from system import REDIS_URL, System


def noop(text: str) -> int:
    return tally.tick()


def numbered(number: int) -> int:
    return tally.started(number)


def sleeper(seconds: float) -> None:
    tally.slept()
    time.sleep(seconds)


class OnRq(System):
    name = "RQ"
    package = "rq"
    setting = "SimpleWorker, which runs tasks without a fork; enqueue_many; worker-pool for two"

    async def open(self) -> None:
        self.queue = Queue(connection=Redis.from_url(REDIS_URL))

    async def submit(self, task: str, argument: object) -> None:
        self.queue.enqueue(f"on_rq.{task}", argument)

    async def submit_many(self, task: str, arguments: list[object]) -> None:
        path = f"on_rq.{task}"
        self.queue.enqueue_many([Queue.prepare_data(path, (text,)) for text in arguments])

    def worker(self, processes: int) -> list[str]:
        simple = ["--worker-class", "rq.worker.SimpleWorker", "--url", REDIS_URL, "--quiet"]
        if processes == 1:
            return ["rq", "worker", *simple]
        return ["rq", "worker-pool", "default", "--num-workers", str(processes), *simple]

    def default_worker(self) -> list[str]:
        return ["rq", "worker", "--url", REDIS_URL, "--quiet"]


system = OnRq()
