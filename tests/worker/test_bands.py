"""In which order waiting tasks are taken: by band, with a share for the lower ones; by queue."""

from __future__ import annotations

import asyncio
from collections import Counter

from dtq_core.limits import Band
from worker.stage import Stage, eventually

LED_BY = {4: "high", 9: "normal", 14: "low"}
"""Of 16 claims, those that begin with a lower band, as documented."""


async def test_bands_are_taken_in_strict_order_but_for_the_documented_share(stage: Stage) -> None:
    order: list[str] = []

    @stage.task
    async def handler(band: str) -> None:
        order.append(band)

    for band in reversed(Band):
        await stage.submit_many(handler.options(band=band), [(str(band),)] * 40)
    async with stage.worker(concurrency=1):
        await eventually("all to run", lambda: len(order) == 160)
    assert order[:32] == [LED_BY.get(n % 16, "critical") for n in range(32)]
    assert Counter(order) == dict.fromkeys(map(str, Band), 40)


async def test_weighted_bands_all_get_a_share_and_the_most_urgent_the_largest(
    stage: Stage,
) -> None:
    order: list[str] = []

    @stage.task
    async def handler(band: str) -> None:
        order.append(band)

    for band in Band:
        await stage.submit_many(handler.options(band=band), [(str(band),)] * 160)
    async with stage.worker(concurrency=1, band_order="weighted"):
        await eventually("all to run", lambda: len(order) == 640)
    first = Counter(order[:150])
    assert first.most_common(1)[0][0] == "critical"
    assert set(first) == set(map(str, Band))


async def test_a_long_queue_does_not_hold_up_another(stage: Stage) -> None:
    order: list[str] = []

    @stage.task
    async def handler(queue: str) -> None:
        order.append(queue)

    await stage.submit_many(handler.options(queue="long"), [("long",)] * 200)
    await stage.submit_many(handler.options(queue="short"), [("short",)] * 5)
    async with stage.worker(queues=["long", "short"], concurrency=1):
        await eventually("all to run", lambda: len(order) == 205)
    assert max(n for n, queue in enumerate(order) if queue == "short") < 12


async def test_a_worker_serves_only_its_queues(stage: Stage) -> None:
    order: list[str] = []

    @stage.task
    async def handler(queue: str) -> None:
        order.append(queue)

    foreign = await stage.submit(handler.options(queue="b"), "b")
    async with stage.worker(queues=["a"]):
        await stage.ended(await stage.submit(handler.options(queue="a"), "a"))
        await asyncio.sleep(0.5)
        assert order == ["a"]
        assert await foreign.status() == "QUEUED"
    async with stage.worker(queues=["a", "b"]):
        await stage.ended(foreign)


async def test_what_was_given_back_comes_before_anything_newer_of_its_band(stage: Stage) -> None:
    order: list[int] = []
    hold = asyncio.Event()

    @stage.task
    async def handler(n: int) -> None:
        order.append(n)
        await hold.wait()

    first = await stage.submit(handler, 1)
    async with stage.worker(concurrency=1, shutdown_grace=0):
        await eventually("the first to run", lambda: order == [1])
    later = await stage.submit_many(handler, [(n,) for n in range(2, 6)])
    hold.set()
    async with stage.worker(concurrency=1):
        await stage.ended(first, *later)
    assert order == [1, 1, 2, 3, 4, 5]
