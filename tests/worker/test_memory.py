"""Redis does not fill up: after tasks of every fate nothing is left but what is documented."""

from __future__ import annotations

import asyncio
from collections import Counter

from dtq_core.limits import Band
from dtq_tasks import Context
from worker.stage import Stage, eventually

COUNT = 5_000
SHORT_LIVED = {"retention": 1.0, "result_ttl": 1.0, "idempotency_ttl": 1.0}


async def test_after_thousands_of_tasks_of_every_fate_only_dead_letters_are_left(
    redis_url: str,
) -> None:
    from worker.stage import staged

    async with staged(redis_url, **SHORT_LIVED) as stage:
        statuses = await _run_all(stage)
        assert statuses == {
            "SUCCEEDED": 3_000,
            "DEAD_LETTERED": 500,
            "FAILED": 500,
            "CANCELLED": 500,
            "EXPIRED": 500,
        }
        left = await eventually("retention to pass", lambda: _short_list(stage), 20)
    parts = Counter(key.split(":")[1] for key in left)
    assert parts.pop("task") == parts.pop("attempts") == 500
    assert set(parts) <= {"stream", "events", "dlq", "queues", "stats", "meta", "workers", "wake"}


async def _run_all(stage: Stage) -> dict[str, int]:
    @stage.task(retry=[0], max_attempts=2)
    async def handler(n: int, ctx: Context) -> int:
        if n % 10 == 1 and ctx.attempt == 1:
            raise ValueError("once")
        if n % 10 in {2, 3}:
            raise ValueError("always")
        return n

    handles = []
    for kind in range(10):
        options = {"band": list(Band)[kind % 4], "dead_letter": kind != 3}
        options |= {4: {"delay": 600}, 5: {"delay": 600, "ttl": 0.1}, 6: {"delay": 0.1}}.get(
            kind, {}
        )
        calls = [(kind,)] * (COUNT // 10)
        handles.append(await stage.submit_many(handler.options(**options), calls))
    await asyncio.gather(*(handle.cancel() for handle in handles[4]))
    async with stage.worker(concurrency=100):
        everything = [handle for group in handles for handle in group]
        return Counter(map(str, await stage.ended(*everything, limit_s=60)))


async def _short_list(stage: Stage) -> list[str]:
    keys = [key.decode() async for key in stage.raw.scan_iter(f"{stage.keys.prefix}:*", count=1000)]
    stage.accepted.clear()  # their records are gone, as they should be
    return keys if len(keys) < 1_100 else []
