"""Redis away, full, read-only, or killed; clients that vanish (scenario M1)."""

from __future__ import annotations

import json
import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from api.site import Api, Site, eventually, problem
from dtq_core.embedded import TemporaryServer, start_temporary

CLIENTS = 100
POOLS = 3 * 16
"""Connections to Redis that stay open once so many were needed at once."""
ADD = {"name": "add", "args": [1, 2], "delay": 60}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TemporaryServer]:
    with start_temporary(tmp_path / "redis", persistence="always") as made:
        yield made


@pytest.fixture
def frail(server: TemporaryServer, tmp_path: Path) -> Iterator[Site]:
    """An API whose server may be hurt."""
    made = Site(tmp_path, server.url, connect_timeout=0.5, retry_timeout=0.2)
    yield made
    made.close()


def works(api: Api) -> bool:
    return api.http.post("/v1/tasks", json=ADD).status_code == 201


def test_while_redis_is_away_it_says_so_and_it_comes_back_by_itself(
    frail: Site, server: TemporaryServer
) -> None:
    api = frail.api
    assert works(api)
    server.kill()
    for _ in range(30):
        problem(api.http.post("/v1/tasks", json=ADD), 503, "unavailable")
    problem(api.http.get("/v1/tasks"), 503, "unavailable")
    problem(api.http.get("/v1/queues"), 503, "unavailable")
    answer = api.http.post("/v1/tasks/batch", json={"tasks": [ADD] * 3})
    problem(answer, 503, "unavailable")
    problem(api.http.get("/readyz"), 503, "unavailable")
    assert api.http.get("/healthz").status_code == 200
    server.restart()
    eventually("it serves again", lambda: works(api))
    assert api.http.get("/readyz").status_code == 200
    lines = [json.loads(line)["event"] for line in api.stop().splitlines()]
    assert len(lines) <= 8, lines


@pytest.mark.parametrize("state", ["full", "read-only", "denied"])
def test_a_server_that_cannot_write_is_no_place_for_tasks(frail: Site, state: str) -> None:
    api, raw = frail.api, frail.raw
    assert works(api)
    if state == "full":
        raw.config_set("maxmemory", 1)
    elif state == "read-only":
        raw.execute_command("REPLICAOF", "127.0.0.1", "1")
    else:
        raw.execute_command("ACL", "SETUSER", "default", "-set", "-hset")
    name, status = ("unfit-redis", 500) if state == "denied" else ("unavailable", 503)
    problem(api.http.post("/v1/tasks", json=ADD), status, name)
    problem(api.http.get("/readyz"), status, name)
    if state == "full":
        raw.config_set("maxmemory", 0)
    elif state == "read-only":
        raw.execute_command("REPLICAOF", "NO", "ONE")
    else:
        raw.execute_command("ACL", "SETUSER", "default", "+@all")
    eventually("it serves again", lambda: works(api))
    assert api.http.get("/readyz").status_code == 200


def test_an_unknown_outcome_is_said_to_be_unknown(frail: Site) -> None:
    """No replica is there to confirm; the server was asked for one before anything was written."""
    answer = frail.api.http.post("/v1/tasks", json=ADD | {"durability": "replica"})
    problem(answer, 500, "unfit-redis")
    assert frail.api.http.post("/v1/tasks", json=ADD | {"durability": "disk"}).status_code == 201
    assert len(frail.api.http.get("/v1/tasks").json()["tasks"]) == 1


def descriptors(api: Api) -> int:
    return len(os.listdir(f"/proc/{api.process.pid}/fd"))


def test_m1_clients_that_vanish_leave_nothing_behind(lonely: Site) -> None:
    """Two rounds of them: who is gone does not count among those who may ask at once."""
    api, raw = lonely.start_api(api_max_requests=CLIENTS + 5), lonely.raw
    task_id = api.http.post("/v1/tasks", json=ADD).json()["id"]
    assert api.http.get(f"/v1/tasks/{task_id}/result", params={"wait": 0.1}).status_code == 202
    before = descriptors(api)
    chance = random.Random(7)
    for _ in range(2):
        peers = [socket.create_connection(api.address, 10) for _ in range(CLIENTS)]
        for number, peer in enumerate(peers):
            path = (f"/v1/tasks/{task_id}/result?wait=60", "/v1/events")[number % 2]
            peer.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for peer in peers[1::2]:
            assert peer.recv(100).startswith(b"HTTP/1.1 200 ")
        assert api.http.get("/v1/tasks").status_code == 200
        assert used_connections(raw) < 40
        chance.shuffle(peers)
        for peer in peers:
            peer.close()
        eventually("the end of all connections", lambda: descriptors(api) <= before + POOLS)
    body = json.dumps(ADD).encode()
    for number in range(CLIENTS):
        with socket.create_connection(api.address, 10) as peer:
            head = (
                b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            )
            request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
            peer.sendall(request[: chance.randrange(len(request))] if number % 2 else request)
    eventually("the end of all connections", lambda: descriptors(api) <= before + POOLS)
    assert works(api)
    done = api.stop()
    assert [json.loads(line)["event"] for line in done.splitlines()] == ["api stopped"]
    assert lonely.ok("verify")


def used_connections(raw: redis.Redis) -> int:
    return sum(client["name"] == "dtq" for client in raw.client_list())
