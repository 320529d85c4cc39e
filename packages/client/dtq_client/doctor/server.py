"""What INFO tells of a server: its version, what survives a crash, its memory, its replicas. Pure.

CONFIG may be forbidden, as it is on hosted servers: nothing here needs it. The one setting that
INFO does not tell, ``appendfsync``, is taken where it may be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dtq_client.doctor.finding import Finding, Verdict
from dtq_core.fitness import MIN_VERSION, version_of

Info = Mapping[str, Any]

_NEARLY_FULL = 0.75
_FULL = 0.9
_UNITS = (("GiB", 2**30), ("MiB", 2**20))
_LAGGING_S = 10
_SYNC = {
    "always": "each write is on the disk before its reply",
    "everysec": "a crash of the machine costs up to one second of writes",
    "no": "a crash of the machine costs up to half a minute of writes",
}
_PERSIST = "redis-cli CONFIG SET appendonly yes, then CONFIG REWRITE"


def examine_server(info: Info, appendfsync: str | None, now_s: float) -> Iterator[Finding]:
    """Examine what a server says of itself.

    Args:
        info: what INFO answers.
        appendfsync: that setting; None where it may not be read.
        now_s: the time of the server, in epoch seconds.
    """
    yield _version(info)
    yield _role(info)
    yield _persistence(info, appendfsync, now_s)
    yield _eviction(info)
    yield _memory(info)
    yield _replicas(info)


def _version(info: Info) -> Finding:
    found = version_of(info)
    needed = ".".join(map(str, MIN_VERSION))
    old = found is not None and found < MIN_VERSION
    return Finding(
        "version",
        Verdict.DANGER if old else Verdict.OK,
        f"Redis {info.get('redis_version', 'of an unknown version')}",
        f"dtq needs {needed} or newer.",
        f"Upgrade Redis to {needed} or newer." if old else None,
    )


def _role(info: Info) -> Finding:
    is_replica = info.get("role") in {"slave", "replica"}
    return Finding(
        "role",
        Verdict.DANGER if is_replica else Verdict.OK,
        "a replica" if is_replica else "a primary",
        "A replica refuses all writes.",
        "Point DTQ_REDIS_URL to the primary." if is_replica else None,
    )


def _persistence(info: Info, appendfsync: str | None, now_s: float) -> Finding:
    why = "What is not on a disk is lost when the server ends, though it was accepted."
    failing = [
        text
        for name, text in (
            ("aof_last_write_status", "the last write to the append-only file failed"),
            ("aof_last_bgrewrite_status", "the last rewrite of the append-only file failed"),
            ("rdb_last_bgsave_status", "the last snapshot failed"),
        )
        if info.get(name, "ok") != "ok"
    ]
    if failing:
        remedy = "Look at the log of the server and at its disk: space, rights."
        return Finding("persistence", Verdict.DANGER, "; ".join(failing), why, remedy)
    if info.get("aof_enabled"):
        return _append_only(appendfsync, why)
    replicas = int(info.get("connected_slaves", 0))
    return Finding(
        "persistence",
        Verdict.WARNING if replicas else Verdict.DANGER,
        f"no append-only file; {_snapshot(info, now_s)}",
        why,
        _PERSIST,
    )


def _append_only(appendfsync: str | None, why: str) -> Finding:
    if appendfsync is None:
        says = "an append-only file; how often it is synced may not be read"
        return Finding("persistence", Verdict.OK, says, why)
    lax = appendfsync == "no"
    return Finding(
        "persistence",
        Verdict.WARNING if lax else Verdict.OK,
        f"an append-only file, appendfsync {appendfsync}: {_SYNC.get(appendfsync, '')}",
        why,
        "redis-cli CONFIG SET appendfsync everysec, then CONFIG REWRITE" if lax else None,
    )


def _snapshot(info: Info, now_s: float) -> str:
    age_s = max(0.0, now_s - float(info.get("rdb_last_save_time", now_s)))
    if age_s >= float(info.get("uptime_in_seconds", 0)):
        return "no snapshot since the server was started"
    changes = int(info.get("rdb_changes_since_last_save", 0))
    return f"the last snapshot is {age_s:,.0f} s old, {changes:,} changes since then"


def _eviction(info: Info) -> Finding:
    policy = str(info.get("maxmemory_policy", "noeviction"))
    evicts = policy != "noeviction"
    return Finding(
        "eviction",
        Verdict.DANGER if evicts else Verdict.OK,
        f"maxmemory-policy {policy}",
        "Any other policy than noeviction throws away tasks when the memory is full.",
        "redis-cli CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE" if evicts else None,
    )


def _memory(info: Info) -> Finding:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    total = limit or int(info.get("total_system_memory", 0))
    share = used / total if total else 0.0
    verdict = Verdict.OK
    if share >= _FULL:
        verdict = Verdict.DANGER
    elif share >= _NEARLY_FULL or not limit:
        verdict = Verdict.WARNING
    of_what = f"the limit of {_size(total)}" if limit else "the machine; there is no limit"
    why = "A full server refuses new tasks. One without a limit is killed with all it holds."
    remedy = "Give it more memory, shorten retention and result_ttl, or drain the queues."
    if not limit and share < _NEARLY_FULL:
        remedy = (
            "redis-cli CONFIG SET maxmemory BYTES, at most three quarters of the machine's memory"
        )
    return Finding(
        "memory",
        verdict,
        f"{_size(used)} used, {share:.0%} of {of_what}",
        why,
        None if verdict is Verdict.OK else remedy,
    )


def _size(count: int) -> str:
    """A number of bytes in the largest unit that fits."""
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,} B"


def _replicas(info: Info) -> Finding:
    why = "Without a replica, tasks stand still while the machine is away, and die with its disk."
    count = int(info.get("connected_slaves", 0))
    replicas = [value for name, value in info.items() if _is_replica(name, value)]
    if not count:
        return Finding(
            "replicas",
            Verdict.WARNING,
            "none",
            why,
            "On another machine: redis-cli REPLICAOF HOST PORT",
        )
    behind = [
        r for r in replicas if r.get("state") != "online" or int(r.get("lag", 0)) > _LAGGING_S
    ]
    return Finding(
        "replicas",
        Verdict.WARNING if behind else Verdict.OK,
        f"{count}, of which {len(behind)} not up to date" if behind else f"{count}, up to date",
        why,
        "Look at the log of the replica, and at the network to it." if behind else None,
    )


def _is_replica(name: str, value: Any) -> bool:
    return name.startswith("slave") and name[5:].isdigit() and isinstance(value, Mapping)
