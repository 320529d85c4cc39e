"""One client for many: threads, a forked process, event loops; closed, it leaves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from client.tasks import add
from dtq import AsyncClient, Client
from dtq_core.errors import ResultTimeoutError
from dtq_core.settings import Settings
from support.eventually import eventually
from support.hand import Hand

TESTS = Path(__file__).parent.parent


def test_sixteen_threads_share_a_client(client: Any, hand: Hand) -> None:
    barrier = threading.Barrier(16)

    def use(thread: int) -> list[str]:
        barrier.wait(10)
        ids = []
        for number in range(20):
            handle = client.submit(add, thread, number)
            assert not handle.status().terminal
            ids.append(handle.id)
        ids += [handle.id for handle in client.submit_many(add, [(thread, 20), (thread, 21)])]
        return ids

    with ThreadPoolExecutor(16) as pool:
        ids = {each for found in pool.map(use, range(16)) for each in found}
    calls = {add.decode(claim.payload)[0] for claim in hand.claim(16 * 22)}
    assert len(ids) == 16 * 22
    assert calls == {(thread, number) for thread in range(16) for number in range(22)}


def test_many_threads_take_few_connections(client: Any, hand: Hand) -> None:
    before = hand.connections()
    handle = client.submit(add, 1)
    barrier = threading.Barrier(100)

    def look(_: int) -> None:
        barrier.wait(10)
        for _ in range(5):
            handle.status()
            handle.cancel()

    with ThreadPoolExecutor(100) as pool:
        list(pool.map(look, range(100)))
    assert hand.connections() - before <= 2 * 17, (
        "as many as may run at once, for scripts and for reads"
    )


def test_closing_leaves_no_thread_and_no_connection(
    face: Any, settings: Settings, hand: Hand
) -> None:
    threads, connections = threading.active_count(), hand.connections()
    client = face(settings.redis_url, prefix=settings.prefix)
    handle = client.submit(add, 1)
    with pytest.raises(ResultTimeoutError):
        handle.result(timeout=0.1)
    assert hand.connections() > connections
    client.close()
    assert threading.active_count() == threads
    eventually("the connections to end", lambda: hand.connections() == connections)


def test_it_may_be_closed_twice_or_unused(face: Any, settings: Settings) -> None:
    unused, used = (face(settings.redis_url, prefix=settings.prefix) for _ in range(2))
    used.submit(add, 1)
    for client in (unused, used):
        client.close()
        client.close()


def test_a_block_closes_it(settings: Settings, hand: Hand) -> None:
    connections = hand.connections()
    with Client(settings.redis_url, prefix=settings.prefix) as client:
        client.submit(add, 1)
    eventually("the connections to end", lambda: hand.connections() == connections)


async def test_a_block_closes_the_asynchronous_one(settings: Settings, hand: Hand) -> None:
    connections = hand.connections()
    async with AsyncClient(settings.redis_url, prefix=settings.prefix) as client:
        handle = await client.submit(add, 1)
        with pytest.raises(ResultTimeoutError):
            await handle.result(timeout=0.05)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    eventually("the connections to end", lambda: hand.connections() == connections)


async def test_the_blocking_one_works_inside_an_event_loop(settings: Settings, hand: Hand) -> None:
    with Client(settings.redis_url, prefix=settings.prefix) as client:
        handle = client.submit(add, 1)
        hand.run_all(1, 1)
        assert handle.result(timeout=5) == 1
        with pytest.raises(ResultTimeoutError):
            client.submit(add, 2).result(timeout=0.05)


def test_an_asynchronous_one_goes_on_in_a_new_loop_once_the_old_is_closed(
    settings: Settings, hand: Hand
) -> None:
    client = AsyncClient(settings.redis_url, prefix=settings.prefix)

    async def use() -> None:
        handle = await client.submit(add, 1)
        with pytest.raises(ResultTimeoutError):
            await handle.result(timeout=0.05)
        await client.close()

    for _ in range(3):
        asyncio.run(use())
    assert len(hand.entries()) == 3


def test_two_loops_at_once_are_refused(settings: Settings, hand: Hand) -> None:
    client = AsyncClient(settings.redis_url, prefix=settings.prefix)
    with asyncio.Runner() as one, asyncio.Runner() as other:
        one.run(client.submit(add, 1))
        with pytest.raises(RuntimeError, match="another event loop"):
            other.run(client.submit(add, 1))
        one.run(client.close())
    assert len(hand.entries()) == 1


def test_a_waiting_coroutine_can_be_cancelled(settings: Settings, hand: Hand) -> None:
    async def wait_in_vain() -> None:
        async with AsyncClient(settings.redis_url, prefix=settings.prefix) as client:
            handle = await client.submit(add, 1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await handle.result()
            hand.run_all(1, 1)
            assert await handle.result(timeout=5) == 1

    asyncio.run(wait_in_vain())


def test_a_forked_process_uses_it_on(settings: Settings, hand: Hand) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "client.forking", json.dumps([settings.redis_url, settings.prefix])],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    ids = run.stdout.split()
    assert len(ids) == len(set(ids)) == 2 + 4 * 3
    assert sorted(hand.entries()) == sorted(ids)
