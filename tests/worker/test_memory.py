"""Redis does not fill up: after tasks of every fate nothing is left but what is documented."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dtq_core import reads
from dtq_core.limits import Band
from dtq_core.states import Status
from dtq_tasks import Context
from worker.stage import Stage, eventually, staged

COUNT = 5_000
KIND = COUNT // 10
OPTIONS: dict[int, dict[str, Any]] = {
    3: {"dead_letter": False},
    4: {"delay": 600},
    5: {"delay": 0.02, "ttl": 0.03},
    6: {"delay": 0.1},
}
LASTING = {"stream", "events", "dlq", "queues", "stats", "meta", "workers", "wake", "measures"}
"""What stays, or is gone within seconds."""


@pytest.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async with staged(redis_url, retention=1.0, result_ttl=1.0, idempotency_ttl=1.0) as made:
        yield made


async def test_e1_after_thousands_of_tasks_of_every_fate_only_dead_letters_are_left(
    stage: Stage,
) -> None:
    @stage.task(retry=[0], max_attempts=2)
    async def handler(kind: int, ctx: Context) -> int:
        if kind in {2, 3} or (kind == 1 and ctx.attempt == 1):
            raise ValueError("no good")
        return kind

    groups = [
        await stage.client.submit_many(
            handler.options(band=list(Band)[kind % 4], **OPTIONS.get(kind, {})), [(kind,)] * KIND
        )
        for kind in range(10)
    ]
    for n in range(50):
        await stage.client.submit(handler.options(idempotency_key=f"key{n}"), 0)
    await asyncio.gather(*(handle.cancel() for handle in groups[4]))
    async with stage.worker(concurrency=100):
        await eventually("the end of all", lambda: _all_ended(stage), 60)
    left = await eventually("the end of their retention", lambda: _only_dead_letters(stage), 20)
    assert set(left) <= LASTING


async def _all_ended(stage: Stage) -> bool:
    [found] = await stage.client.store.read(reads.queues(stage.keys, ["default"]))
    others = {status: KIND if status.terminal else 0 for status in Status}
    return found.tasks == others | {Status.SUCCEEDED: COUNT - 4 * KIND + 50}


async def _only_dead_letters(stage: Stage) -> Counter[str] | None:
    """The kinds of all other keys, once just the dead letters have a record and attempts."""
    pattern = f"{stage.keys.prefix}:*"
    found = [key.decode() async for key in stage.raw.scan_iter(pattern, count=1000)]
    kinds = Counter(key.split(":")[1] for key in found)
    return kinds if kinds.pop("task") == kinds.pop("attempts") == KIND else None
