"""A server that is away, read-only, full or not ours: calls wait for it, or say so in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from client.tasks import add, anything
from dtq_core.embedded import TemporaryServer
from dtq_core.errors import (
    RedisDeniedError,
    RedisFullError,
    RedisUnavailableError,
    RedisUnfitError,
    ResultTimeoutError,
)
from dtq_core.scripts import SUBMIT
from dtq_core.settings import Settings
from support.eventually import eventually
from support.hand import Hand
from support.proxy import Fault, Proxy, runs

AWAY_S = 2.0
NOBODY = "redis://127.0.0.1:1"

Own = tuple[Any, Hand]


@pytest.fixture
def own(
    make_client: Any,
    make_hand: Callable[[Settings], Hand],
    own_server: TemporaryServer,
    own_settings: Settings,
) -> Own:
    """A client and a hand on a server that may be hurt."""
    return make_client(own_server.url), make_hand(own_settings)


@contextmanager
def back_after(seconds: float, come_back: Callable[[], object]) -> Iterator[None]:
    timer = threading.Timer(seconds, come_back)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_submits_wait_for_a_server_that_is_away(
    make_client: Any, hand: Hand, settings: Settings
) -> None:
    assert settings.redis_url is not None
    with Proxy(settings.redis_url) as proxy, ThreadPoolExecutor(8) as pool:
        client = make_client(proxy.url)
        running = [pool.submit(client.submit, add, number) for number in range(400)]
        eventually("some to be accepted", hand.entries)
        proxy.go_away()
        with back_after(AWAY_S, proxy.come_back):
            running += [pool.submit(client.submit, add, number) for number in range(100)]
            ids = [each.result(30).id for each in running]
    assert len(set(ids)) == 500
    assert sorted(hand.entries()) == sorted(ids)


def test_a_client_may_start_while_the_server_is_away(
    make_client: Any, hand: Hand, settings: Settings
) -> None:
    assert settings.redis_url is not None
    with Proxy(settings.redis_url) as proxy:
        proxy.go_away()
        client = make_client(proxy.url)
        with back_after(0.3, proxy.come_back):
            handle = client.submit(add, 1)
    assert hand.entries() == [handle.id]


def test_a_restart_costs_one_call_no_more_than_a_moment(
    own: Own, own_server: TemporaryServer
) -> None:
    """However many connections are stale, the first failure is enough to know."""
    client, hand = own
    threads = 40
    barrier = threading.Barrier(threads)

    def submit(number: int) -> str:
        barrier.wait(10)
        task_id: str = client.submit(add, number).id
        return task_id

    with ThreadPoolExecutor(threads) as pool:
        ids = list(pool.map(submit, range(threads)))
    own_server.restart()
    ids += [client.submit(add, number).id for number in range(20)]
    assert sorted(hand.entries()) == sorted(ids)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.submit(add, 1),
        lambda c: c.submit_many(add, [(1,), (2,)]),
        lambda c: c.get("0" * 32),
        lambda c: c.cancel("0" * 32),
        lambda c: c.attempts("0" * 32),
        lambda c: c.result("0" * 32),
    ],
    ids=["submit", "submit_many", "get", "cancel", "attempts", "result"],
)
def test_whoever_waits_in_vain_is_told_in_time(make_client: Any, call: Any) -> None:
    client = make_client(NOBODY, retry_timeout=0.1)
    start = time.monotonic()
    with pytest.raises(RedisUnavailableError, match=r"Redis at redis://127\.0\.0\.1:1: "):
        call(client)
    assert 0.1 <= time.monotonic() - start < 5


def test_a_server_that_says_nothing_is_given_up_in_time(
    make_client: Any, settings: Settings
) -> None:
    assert settings.redis_url is not None
    with Proxy(settings.redis_url) as proxy:
        client = make_client(proxy.url, connect_timeout=0.1, retry_timeout=0.1)
        proxy.arm(Fault.DROP_REPLY, runs(SUBMIT), times=100)
        start = time.monotonic()
        with pytest.raises(RedisUnavailableError, match=r"(?i)time"):
            client.submit(add, 1)
        assert time.monotonic() - start < 5
        assert proxy.hits > 1


def test_waiting_for_a_result_takes_no_longer_than_asked(make_client: Any) -> None:
    client = make_client(NOBODY, retry_timeout=60)
    for timeout in (0, 0.1):
        start = time.monotonic()
        with pytest.raises(RedisUnavailableError):
            client.result("0" * 32, timeout=timeout)
        assert time.monotonic() - start < 5


def test_without_patience_the_first_failure_is_told(make_client: Any) -> None:
    client = make_client(NOBODY, retry_timeout=0)
    with pytest.raises(RedisUnavailableError):
        client.submit(add, 1)


def test_a_read_only_server_is_waited_for(own: Own) -> None:
    client, hand = own
    client.submit(add, 0)
    hand.command("REPLICAOF", "127.0.0.1", "1")
    with back_after(0.3, lambda: hand.command("REPLICAOF", "NO", "ONE")):
        client.submit(add, 1)
    assert len(hand.entries()) == 2


def test_a_server_that_stays_read_only_is_told(
    make_client: Any, own: Own, own_server: TemporaryServer
) -> None:
    client, hand = make_client(own_server.url, retry_timeout=0.2), own[1]
    handle = client.submit(add, 0)
    hand.command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(RedisUnavailableError, match="read only"):
            client.submit(add, 1)
        assert not handle.status().terminal, "it can still be looked at"
    finally:
        hand.command("REPLICAOF", "NO", "ONE")
    assert hand.entries() == [handle.id]


@pytest.mark.parametrize(
    "options",
    [{}, {"delay": 60}, {"ttl": 60}, {"idempotency_key": "k"}, {"idempotency_key": "k", "ttl": 9}],
    ids=repr,
)
def test_a_full_server_refuses_and_keeps_nothing_half_written(
    own: Own, options: dict[str, Any]
) -> None:
    client, hand = own
    client.submit(add, 0)
    hand.run_all(1)
    before = hand.keys()
    hand.command("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(RedisFullError, match="maxmemory"):
            client.submit(anything.options(**options), "x")
        with pytest.raises(RedisFullError):
            client.submit_many(anything, [("x",)] * 600)
        assert hand.keys() == before
    finally:
        hand.command("CONFIG", "SET", "maxmemory", "0")
    assert not client.submit(anything.options(**options), "x").duplicate


def test_a_wrong_number_of_partitions_is_refused(make_client: Any, hand: Hand) -> None:
    right = make_client(partitions=3)
    right.submit(add, 1)
    before = hand.keys()
    for wrong in (make_client(), make_client(partitions=4)):
        with pytest.raises(RedisUnfitError, match="set DTQ_PARTITIONS=3"):
            wrong.submit(add, 1)
        with pytest.raises(RedisUnfitError, match="set DTQ_PARTITIONS=3"):
            wrong.get("0" * 32)
    assert hand.keys() == before


def test_a_wrong_password_is_told_without_it(
    own: Own, own_server: TemporaryServer, face: Any
) -> None:
    url = own_server.url.replace("redis://", "redis://someone:secret@")
    client = face(url)
    try:
        with pytest.raises(RedisDeniedError) as caught:
            client.submit(add, 1)
    finally:
        client.close()
    assert "secret" not in str(caught.value)


def test_a_user_without_a_right_to_channels_learns_of_the_end_all_the_same(
    own: Own, own_server: TemporaryServer, own_settings: Settings, make_client: Any
) -> None:
    _, hand = own
    hand.command(
        "ACL", "SETUSER", "dtq", "on", ">pw", f"~{own_settings.prefix}*", "resetchannels", "+@all"
    )
    client = make_client(own_server.url.replace("redis://", "redis://dtq:pw@"))
    handle = client.submit(add, 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.result, timeout=20)
        hand.run_all(1, 1)
        assert waiting.result(30) == 1
    with pytest.raises(ResultTimeoutError):
        client.submit(add, 1).result(timeout=0.2)
