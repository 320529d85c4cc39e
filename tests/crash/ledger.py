"""What must hold at the end: each accepted task ended once, and nothing is left lying about."""

from __future__ import annotations

from collections.abc import Collection

from dtq_core.keyspace import GROUP, Keyspace
from dtq_core.states import Status
from dtq_core.store import Store


def check_ledger(store: Store, accepted: Collection[str]) -> None:
    for task_id in accepted:
        status = store.link.command("HGET", store.keys_of(task_id).task(task_id), "status")
        assert status, f"{task_id} has no record"
        assert Status(status.decode()).terminal, f"{task_id} is {status.decode()}"
    for keys in store.partitions.all:
        _check_partition(store, keys)


def _check_partition(store: Store, keys: Keyspace) -> None:
    command = store.link.command
    for schedule in (keys.retry_schedule, keys.delay_schedule, keys.expiry):
        assert command("ZCARD", schedule) == 0, f"{schedule} is not empty"
    durable = {keys.events, keys.dlq, keys.queues, keys.workers}
    pattern = keys.prefix.replace("{", "[{]").replace("}", "[}]") + ":*"
    for raw in command("KEYS", pattern):
        key = raw.decode()
        kind = key.removeprefix(keys.prefix + ":").partition(":")[0]
        if kind == "stream":
            assert command("XLEN", key) == 0, f"{key} is not empty"
            assert command("XPENDING", key, GROUP)["pending"] == 0, key
        elif kind in {"task", "attempts"}:
            status = command("HGET", keys.task(key.rpartition(":")[2]), "status")
            assert status == b"DEAD_LETTERED" or command("PTTL", key) > 0, f"{key} stays for ever"
        elif key not in durable and kind not in {"stats", "meta"}:
            assert command("PTTL", key) > 0, f"{key} stays for ever"
