"""What INFO tells, turned into verdicts: the cases that no server of a test can be brought to."""

from __future__ import annotations

from typing import Any

import pytest

from dtq_client.doctor.finding import Finding, Verdict
from dtq_client.doctor.server import examine_server

NOW_S = 1_800_000_000
GIB = 2**30
SOUND: dict[str, Any] = {
    "redis_version": "8.2.1",
    "role": "master",
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "aof_last_bgrewrite_status": "ok",
    "rdb_last_bgsave_status": "ok",
    "rdb_last_save_time": NOW_S - 60,
    "rdb_changes_since_last_save": 5,
    "uptime_in_seconds": 3_600,
    "maxmemory": 4 * GIB,
    "maxmemory_policy": "noeviction",
    "used_memory": GIB,
    "total_system_memory": 8 * GIB,
    "connected_slaves": 1,
    "slave0": {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 9, "lag": 1},
}


def examined(appendfsync: str | None = "everysec", **changed: Any) -> dict[str, Finding]:
    return {f.check: f for f in examine_server(SOUND | changed, appendfsync, NOW_S)}


def test_a_sound_server_has_nothing_to_mend() -> None:
    found = examined()
    assert {finding.verdict for finding in found.values()} == {Verdict.OK}
    assert {finding.remedy for finding in found.values()} == {None}
    assert found["memory"].says == "1.0 GiB used, 25% of the limit of 4.0 GiB"


@pytest.mark.parametrize(
    ("check", "verdict", "changed"),
    [
        ("version", Verdict.DANGER, {"redis_version": "6.0.16"}),
        ("version", Verdict.OK, {"redis_version": "6.2.0"}),
        ("version", Verdict.OK, {"redis_version": "unstable"}),
        ("role", Verdict.DANGER, {"role": "slave"}),
        ("persistence", Verdict.DANGER, {"aof_last_write_status": "err"}),
        ("persistence", Verdict.DANGER, {"aof_last_bgrewrite_status": "err"}),
        ("persistence", Verdict.DANGER, {"rdb_last_bgsave_status": "err"}),
        ("persistence", Verdict.DANGER, {"aof_enabled": 0, "connected_slaves": 0}),
        ("persistence", Verdict.WARNING, {"aof_enabled": 0}),
        ("persistence", Verdict.WARNING, {"appendfsync": "no"}),
        ("persistence", Verdict.OK, {"appendfsync": "always"}),
        ("persistence", Verdict.OK, {"appendfsync": None}),
        ("eviction", Verdict.DANGER, {"maxmemory_policy": "allkeys-lru"}),
        ("eviction", Verdict.DANGER, {"maxmemory_policy": "volatile-ttl"}),
        ("memory", Verdict.WARNING, {"used_memory": 3 * GIB}),
        ("memory", Verdict.DANGER, {"used_memory": 4 * GIB}),
        ("memory", Verdict.WARNING, {"maxmemory": 0}),
        ("memory", Verdict.DANGER, {"maxmemory": 0, "used_memory": 7.5 * GIB}),
        ("replicas", Verdict.WARNING, {"connected_slaves": 0, "slave0": None}),
        ("replicas", Verdict.WARNING, {"slave0": {"state": "wait_bgsave", "lag": 0}}),
        ("replicas", Verdict.WARNING, {"slave0": {"state": "online", "lag": 60}}),
    ],
)
def test_each_thing_has_its_verdict_and_what_mends_it(
    check: str, verdict: Verdict, changed: dict[str, Any]
) -> None:
    found = examined(**changed)
    assert found[check].verdict is verdict
    assert (found[check].remedy is None) == (verdict is Verdict.OK)
    others = {finding.verdict for name, finding in found.items() if name != check}
    assert others <= {Verdict.OK, Verdict.WARNING}


def test_the_age_of_the_last_snapshot_is_told() -> None:
    (told,) = [f.says for name, f in examined(aof_enabled=0).items() if name == "persistence"]
    assert told == "no append-only file; the last snapshot is 60 s old, 5 changes since then"
    never = examined(aof_enabled=0, rdb_last_save_time=NOW_S - 3_600)["persistence"].says
    assert never == "no append-only file; no snapshot since the server was started"


def test_what_info_leaves_out_breaks_nothing() -> None:
    found = {finding.check: finding for finding in examine_server({}, None, NOW_S)}
    assert found["version"].says == "Redis of an unknown version"
    assert found["memory"].says.startswith("0 B used")
