"""A rolling deploy: a worker meets tasks that only newer workers know."""

from __future__ import annotations

from dtq_core.decide import Release
from dtq_tasks import Registry, TaskDecorator
from dtq_tasks.retry import fixed
from worker.stage import Stage, eventually


async def test_a7_an_unknown_task_is_given_back_at_no_attempt_and_runs_where_it_is_known(
    stage: Stage,
) -> None:
    runs: list[int] = []
    old, new = Registry(), stage.registry

    @TaskDecorator(old)(name="x")
    async def x_old() -> None: ...

    @stage.task(max_attempts=1)
    async def y(n: int) -> int:
        runs.append(n)
        return n

    handles = await stage.submit_many(y, [(n,) for n in range(50)])
    async with stage.worker(old):

        async def all_given_back() -> bool:
            return all([(await handle.info()).releases > 0 for handle in handles])

        await eventually("every y to be given back", all_given_back)
        assert runs == []
        async with stage.worker(new):
            assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert sorted(runs) == list(range(50))
    assert {(await handle.info()).attempt for handle in handles} == {1}


async def test_an_unknown_task_rests_before_it_is_looked_at_again(stage: Stage) -> None:
    async with stage.worker(unknown_task_delay=600):
        handle = await stage.submit_by_name("nobody_knows")
        await eventually("a schedule", lambda: stage.raw.zcard(stage.keys.delay_schedule))
        info = await handle.info()
        assert (info.status, info.attempt, info.releases) == ("SCHEDULED", 1, 1)
        assert info.error == "given back: no worker that took it knows the task nobody_knows"
        assert await handle.cancel() == "cancelled"
        assert (await handle.info()).error == "cancelled"


async def test_a_task_that_was_given_back_says_so_no_more_once_a_worker_knows_it(
    stage: Stage,
) -> None:
    @stage.task(max_attempts=2, retry=fixed(600))
    async def y() -> None:
        raise ValueError("no")

    handle = await stage.submit(y)
    async with stage.worker(Registry()):

        async def given_back() -> bool:
            return "given back" in ((await handle.info()).error or "")

        await eventually("it to be given back", given_back)
    async with stage.worker():
        await eventually("its retry", lambda: stage.has_status(handle, "RETRYING"))
    assert (await handle.info()).error == "ValueError: no"
    await handle.cancel()


async def test_a7_a_task_that_no_worker_knows_is_dead_lettered_by_time_with_that_reason(
    stage: Stage,
) -> None:
    async with stage.worker(unknown_task_delay=0.05, unknown_task_timeout=0.4):
        handle = await stage.submit_by_name("nobody_knows", ["arguments", "stay"])
        assert await stage.ended(handle) == ["DEAD_LETTERED"]
        info = await handle.info()
        payload = await stage.raw.hget(stage.keys.task(handle.id), "payload")
    assert info.releases >= 2
    assert info.attempt == 1
    assert "no worker knew this task" in (info.error or "")
    assert payload == b'[["arguments","stay"],{}]'


async def test_a7_a_task_that_a_dead_worker_left_is_not_dropped_by_one_that_does_not_know_it(
    stage: Stage,
) -> None:
    runs = 0

    @stage.task(max_attempts=1)
    async def y() -> None:
        nonlocal runs
        runs += 1

    handle = await stage.submit(y)
    store = stage.client.store
    taken = await store.run(store.calls[0].claim("dead", 1, [("default", "normal")]))
    assert len(taken.claims) == 1
    back = Release.now(taken.claims[0], "its worker stops")
    await store.run(store.calls[0].release([back]))
    async with stage.worker(Registry()):

        async def given_back() -> bool:
            return (await handle.info()).releases >= 2

        await eventually("y to be given back", given_back)
    async with stage.worker():
        assert await stage.ended(handle) == ["SUCCEEDED"]
    assert runs == 1
