"""What must hold at the end: each accepted task ended once, and nothing is left lying about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtq_core.keyspace import GROUP, Partitions
from dtq_core.states import Status


async def check_ledger(raw: Any, partitions: Partitions, accepted: Iterable[str]) -> None:
    for task_id in accepted:
        status = (await raw.hget(partitions.of(task_id).task(task_id), "status") or b"").decode()
        assert status in Status.__members__, f"{task_id} has status {status!r}"
        assert Status(status).terminal, f"{task_id} is {status}"
    for keys in partitions.all:
        await _check_partition(raw, keys)


async def _check_partition(raw: Any, keys: Any) -> None:
    for schedule in (keys.retry_schedule, keys.delay_schedule, keys.expiry):
        assert await raw.zcard(schedule) == 0, f"{schedule} is not empty"
    durable = {keys.events, keys.dlq, keys.queues, keys.workers}
    pattern = keys.prefix.replace("{", "[{]").replace("}", "[}]") + ":*"
    async for key in raw.scan_iter(match=pattern, count=1000):
        name = key.decode()
        part = name.removeprefix(keys.prefix + ":").partition(":")[0]
        if part == "stream":
            assert await raw.xlen(name) == 0, f"{name} is not empty"
            groups = await raw.xinfo_groups(name)
            assert all(g["pending"] == 0 for g in groups if g["name"] == GROUP.encode()), name
        elif name in durable or part in {"stats", "meta"}:
            continue
        elif part in {"task", "attempts"}:
            task_id = name.rpartition(":")[2]
            status = await raw.hget(keys.task(task_id), "status")
            assert status == b"DEAD_LETTERED" or await raw.pttl(name) > 0, f"{name} stays for ever"
        else:
            assert await raw.pttl(name) > 0, f"{name} stays for ever"
