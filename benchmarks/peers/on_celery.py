"""Celery."""

from __future__ import annotations

import os
import time

import tally
from celery import Celery
from system import REDIS_URL, System

app = Celery("on_celery", broker=REDIS_URL, backend=REDIS_URL)
if os.environ.get("BENCH_FAST"):
    app.conf.update(task_acks_late=True, worker_prefetch_multiplier=128)


@app.task(name="noop")
def noop(text: str) -> int:
    return tally.tick()


@app.task(name="numbered")
def numbered(number: int) -> int:
    return tally.started(number)


@app.task(name="sleeper")
def sleeper(seconds: float) -> None:
    tally.slept()
    time.sleep(seconds)


TASKS = {"noop": noop, "numbered": numbered, "sleeper": sleeper}


class OnCelery(System):
    name = "Celery"
    package = "celery"
    setting = (
        "acks_late, prefetch_multiplier 128, without gossip, mingle and heartbeat; prefork pool"
    )

    async def open(self) -> None:
        self.producer = app.amqp.Producer(app.connection_for_write())

    async def submit(self, task: str, argument: object) -> None:
        TASKS[task].apply_async((argument,), producer=self.producer)

    def worker(self, processes: int) -> list[str]:
        os.environ["BENCH_FAST"] = "1"
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        return [*self.default_worker(), "-c", str(processes), *quiet]

    def default_worker(self) -> list[str]:
        return ["celery", "-A", "on_celery", "worker", "--loglevel", "ERROR"]


system = OnCelery()
