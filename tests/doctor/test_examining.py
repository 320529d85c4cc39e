"""``dtq doctor`` on real servers: sound ones, and ones that lack something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from cli.terminal import Terminal
from dtq_core.embedded import TemporaryServer, start_temporary
from dtq_core.keyspace import GROUP

ALL = [
    *("version", "role", "persistence", "eviction", "memory", "replicas"),
    *("clock", "latency", "scripts", "rights", "layout", "workers", "scheduler", "consumers"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TemporaryServer]:
    with start_temporary(tmp_path / "redis", persistence="everysec", port=None) as made:
        yield made


@pytest.fixture
def raw(server: TemporaryServer) -> Iterator[redis.Redis]:
    with closing(redis.Redis.from_url(server.url)) as made:
        yield made


@pytest.fixture
def terminal(server: TemporaryServer, tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path, server.url)
    yield made
    made.close()


def examined(terminal: Terminal, **settings: Any) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and what was found by the name of the check."""
    done = terminal.run("doctor", "--json", **settings)
    return done.code, {finding["check"]: finding for finding in json.loads(done.out)}


def test_a_deployment_in_order_is_said_to_be(terminal: Terminal, raw: redis.Redis) -> None:
    raw.config_set("maxmemory", "256mb")
    terminal.start_worker()
    assert terminal.client.result(terminal.submit("add", 1, 2), 20) == 3
    code, found = examined(terminal)
    assert code == 0
    assert list(found) == ALL
    del found["replicas"], found["latency"], found["scripts"]  # none; and how busy the machine is
    assert {finding["verdict"] for finding in found.values()} == {"ok"}


def test_people_see_a_table_and_what_mends_what_is_not_in_order(
    terminal: Terminal, raw: redis.Redis
) -> None:
    raw.config_set("maxmemory-policy", "allkeys-lru")
    done = terminal.run("doctor")
    assert done.code == 1
    assert "eviction     danger   maxmemory-policy allkeys-lru" in done.out
    assert "redis-cli CONFIG SET maxmemory-policy noeviction" in done.out
    assert done.err == "dtq: 1 danger\n"


def test_a_server_without_persistence_is_a_danger(terminal: Terminal, raw: redis.Redis) -> None:
    raw.config_set("appendonly", "no")
    code, found = examined(terminal)
    assert (code, found["persistence"]["verdict"]) == (1, "danger")


def test_a_full_server_is_a_danger(terminal: Terminal, raw: redis.Redis) -> None:
    raw.config_set("maxmemory", "1mb")
    code, found = examined(terminal)
    assert code == 1
    assert found["scripts"]["verdict"] == found["memory"]["verdict"] == "danger"


def test_neither_config_nor_info_has_to_be_allowed(terminal: Terminal, raw: redis.Redis) -> None:
    rule = "on >s ~* &* +@all -@admin -@dangerous"
    raw.execute_command("ACL", "SETUSER", "modest", *rule.split())
    where = urlsplit(terminal.client.store.url)
    modest = f"redis://modest:s@{where.hostname}:{where.port}"
    code, found = examined(terminal, redis_url=modest)
    assert (code, found["server"]["verdict"]) == (0, "unknown")
    assert found["rights"]["verdict"] == "ok"
    raw.execute_command("ACL", "SETUSER", "modest", "+info")
    code, found = examined(terminal, redis_url=modest)
    assert code == 0
    assert found["persistence"]["verdict"] == "ok"
    assert "may not be read" in found["persistence"]["says"]


def test_tasks_that_nobody_serves_are_a_danger(terminal: Terminal) -> None:
    terminal.submit("add", 1, 2)
    code, found = examined(terminal)
    assert (code, found["workers"]["verdict"]) == (1, "danger")
    assert found["workers"]["says"] == "0 alive; nobody serves default, where 1 wait"
    assert found["workers"]["remedy"] == "dtq worker MODULE --queue default"


def test_delayed_tasks_without_a_scheduler_are_a_danger(terminal: Terminal) -> None:
    terminal.submit("add", 1, 2, delay=600)
    code, found = examined(terminal)
    assert (code, found["scheduler"]["verdict"]) == (1, "danger")


def test_what_dead_workers_hold_is_found(terminal: Terminal, raw: redis.Redis) -> None:
    terminal.submit("add", 1, 2)
    keys = terminal.client.store.partitions.all[0]
    stream = keys.stream("default", "normal")
    raw.xgroup_create(stream, GROUP, 0)
    raw.xreadgroup(GROUP, "ghost", {stream: ">"})
    code, found = examined(terminal)
    assert (code, found["consumers"]["verdict"]) == (1, "danger")
    assert found["consumers"]["says"] == "ghost died with 1 entries; nobody has taken them"
    raw.xgroup_delconsumer(stream, GROUP, "ghost")
    raw.xgroup_createconsumer(stream, GROUP, "ghost")
    _, found = examined(terminal)
    assert found["consumers"]["says"] == "1 empty ones are left"


def test_another_number_of_partitions_is_a_danger(terminal: Terminal) -> None:
    terminal.submit("add", 1, 2)
    code, found = examined(terminal, partitions=3)
    assert (code, found["layout"]["verdict"]) == (1, "danger")
    assert "DTQ_PARTITIONS=1" in found["layout"]["says"]


def test_a_server_that_is_not_there_is_one_clear_line(terminal: Terminal) -> None:
    done = terminal.run("doctor", redis_url="redis://127.0.0.1:1")
    assert done.code == 1
    assert done.out == ""
    assert done.err.count("\n") == 1
