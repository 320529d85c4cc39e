"""A supervisor keeps its worker processes alive; what a dead one held runs at once elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import dtq_worker.supervisor
from dtq_core.clock import mono_s
from dtq_worker.supervisor import Supervisor
from support.journal import JOURNAL
from support.programs import TESTS, clean_environment, gone
from worker import handlers
from worker.processes import Crew, Journal
from worker.stage import Stage, eventually

LONG_LEASE = {"visibility_timeout": 30, "reaper_interval": 30}


async def ready(stage: Stage, count: int = 1) -> None:
    """Wait until that many workers have said that they live."""

    async def alive() -> bool:
        return await stage.raw.zcard(stage.keys.workers) >= count

    await eventually(f"{count} workers", alive)


async def test_what_a_killed_child_held_restarts_elsewhere_long_before_the_visibility_timeout(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(processes=2, concurrency=8, **LONG_LEASE)
    await ready(stage, 2)
    handles = [await stage.submit(handlers.nap, 1.5) for _ in range(6)]
    before = await journal.wait_for("start", 6)
    victim = before[0].pid
    lost = [line for line in before if line.pid == victim]
    killed_s = mono_s()
    os.kill(victim, signal.SIGKILL)
    after = (await journal.wait_for("start", 6 + len(lost)))[6:]
    assert {line.task_id for line in after} == {line.task_id for line in lost}
    assert max(line.at_s for line in after) - killed_s < 2
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    await eventually("a new child", lambda: len(set(supervisor.children()) - {victim}) == 2)
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0
    assert sum("died" in line for line in supervisor.lines()) == 1


async def test_a_child_that_cannot_start_ends_the_supervisor_with_one_clear_line(
    stage: Stage, crew: Callable[..., Crew], tmp_path: Path
) -> None:
    sources = {
        "raises": "raise ValueError('the database is not configured')",
        "exits": "import sys; sys.exit('no licence')",
        "misspelt": "import no_such_module_at_all",
        "broken": "def f(:",
        "empty": "",
    }
    crews = {}
    for name, source in sources.items():
        counted = f"open(__file__ + '.starts', 'a').write('x')\n{source}\n"
        (tmp_path / f"{name}.py").write_text(counted if name != "broken" else source)
        crews[name] = crew(name, processes=1)
    for name, each in crews.items():
        assert await each.ended(30) == 1, name
        [line] = [line for line in each.lines() if "dtq worker:" in line]
        assert name in line
        assert "Traceback" not in each.log.read_text(), name
        if name != "broken":
            assert (tmp_path / f"{name}.py.starts").read_text() == "x", name
    assert "the database is not configured" in crews["raises"].log.read_text()
    assert "no licence" in crews["exits"].log.read_text()


@pytest.mark.parametrize("program", ["false", "true"])
async def test_a_child_that_dies_or_ends_at_once_is_started_again_less_and_less_often(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    starts: list[float] = []
    start_process = asyncio.create_subprocess_exec

    async def start(*_: str, **options: Any) -> asyncio.subprocess.Process:
        starts.append(mono_s())
        return await start_process(program, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    supervisor = Supervisor(stage.settings(), ["none"])
    running = asyncio.create_task(supervisor.run())
    await eventually("some starts", lambda: len(starts) == 4)
    supervisor.stop()
    assert await running == 0
    pauses = [after - before for before, after in pairwise(starts)]
    assert all(pause > least for pause, least in zip(pauses, (0.1, 0.2, 0.4), strict=True))


async def test_a_child_that_does_not_end_is_killed_some_time_after_its_grace_time(
    stage: Stage, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dtq_worker.supervisor, "_KILL_AFTER_S", 0.3)
    for name, value in clean_environment(TESTS).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(JOURNAL, str(journal.path))
    supervisor = Supervisor(stage.settings(shutdown_grace=0), ["worker.handlers"])
    running = asyncio.create_task(supervisor.run())
    handle = await stage.submit(handlers.block.options(max_attempts=1), 60)
    [line] = await journal.wait_for("start")
    supervisor.stop()
    assert await running == 0
    assert gone(line.pid)
    async with stage.worker(handlers.REGISTRY):
        assert await stage.ended(handle) == ["DEAD_LETTERED"]


async def test_children_of_a_killed_supervisor_finish_and_end(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(processes=2, **LONG_LEASE)
    await ready(stage, 2)
    handles = [await stage.submit(handlers.nap, 1) for _ in range(4)]
    await journal.wait_for("start", 4)
    children = supervisor.children()
    assert len(children) == 2
    supervisor.signal(signal.SIGKILL)
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    await eventually("the end of the children", lambda: all(map(gone, children)))
    assert len(journal.lines("start")) == 4


async def test_a_child_is_replaced_after_its_number_of_tasks(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(max_tasks_per_process=5, **LONG_LEASE)
    await ready(stage)
    handles = [await stage.submit(handlers.nap, 0) for _ in range(5)]
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    [first] = {await handle.result(1) for handle in handles}
    await eventually("its end", lambda: gone(first))
    later = await stage.submit(handlers.nap, 0)
    assert await later.result(10) != first
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0
    assert not any("died" in line for line in supervisor.lines())


async def test_a_child_is_replaced_when_it_has_grown_too_large(
    stage: Stage, crew: Callable[..., Crew]
) -> None:
    supervisor = crew(max_memory_mib=1, **LONG_LEASE)
    await ready(stage)
    [first] = await eventually("a child", supervisor.children)
    await eventually("its end", lambda: gone(first))
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 0


async def test_a_child_with_a_handler_that_does_not_stop_is_replaced_once_the_rest_has_drained(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    crew(**LONG_LEASE)
    await ready(stage)
    stuck = await stage.submit(handlers.doze.options(timeout=0.2, max_attempts=1), 60)
    rest = await stage.submit(handlers.nap, 1)
    [first, _] = await journal.wait_for("start", 2)
    later = await stage.submit(handlers.nap.options(delay=0.5), 0)
    assert await stage.ended(stuck) == ["DEAD_LETTERED"]
    assert await rest.result(10) == first.pid
    assert await later.result(10) != first.pid
    assert gone(first.pid)


async def test_h2_a_task_that_ends_its_process_is_given_up_and_ends_nothing_else(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(**LONG_LEASE)
    await ready(stage)
    for code, lives in ((3, 1), (0, 2)):
        killer = await stage.submit(handlers.fall.options(max_attempts=lives), code)
        assert await stage.ended(killer) == ["DEAD_LETTERED"]
        reason = (await killer.info()).error or ""
        assert f"worker lost on attempt {lives} of {lives}" in reason
    innocent = await stage.submit(handlers.nap, 0)
    assert await stage.ended(innocent) == ["SUCCEEDED"]
    assert supervisor.exit_code is None


async def test_h4_a_second_signal_ends_everything_within_two_seconds_even_a_blocked_loop(
    stage: Stage, crew: Callable[..., Crew], journal: Journal
) -> None:
    supervisor = crew(processes=2, concurrency=4, shutdown_grace=60, **LONG_LEASE)
    await ready(stage, 2)
    held = [
        await stage.submit(handler.options(max_attempts=1), 60)
        for handler in (handlers.nap, handlers.doze, handlers.stubborn)
    ]
    await journal.wait_for("start", 3)
    pids = {line.pid for line in journal.lines("start")}
    blocking = await stage.submit(handlers.block, 60)
    await journal.wait_for("start", 4)
    [blocked] = {line.pid for line in journal.lines("start", blocking.id)}
    supervisor.signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    assert supervisor.exit_code is None
    second_s = mono_s()
    supervisor.signal(signal.SIGTERM)
    assert await supervisor.ended() == 1
    assert mono_s() - second_s < 3
    assert all(gone(pid) for pid in {*pids, blocked})
    for handle in held:
        info = await handle.info()
        on_blocked = journal.lines("start", handle.id)[0].pid == blocked
        assert info.status == ("RUNNING" if on_blocked else "QUEUED")
        assert info.attempt == 1
    for handle in (*held, blocking):
        await handle.cancel()
    async with stage.worker(visibility_timeout=0.5, registry=handlers.REGISTRY):
        await stage.ended(*held, blocking)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_h4_a_signal_to_the_whole_group_is_an_orderly_stop(
    stage: Stage, crew: Callable[..., Crew], journal: Journal, number: signal.Signals
) -> None:
    supervisor = crew(shutdown_grace=10, **LONG_LEASE)
    await ready(stage)
    handles = [await stage.submit(handlers.nap.options(max_attempts=1), 0.5) for _ in range(4)]
    await journal.wait_for("start", 4)
    supervisor.signal_all(number)
    assert await supervisor.ended() == 0
    assert set(await stage.ended(*handles)) == {"SUCCEEDED"}
    assert {(await handle.info()).releases for handle in handles} == {0}
    assert not any("died" in line for line in supervisor.lines())


async def test_h4_a_signal_during_the_start_ends_everything(
    stage: Stage, crew: Callable[..., Crew]
) -> None:
    async def stop_after(seconds: float) -> None:
        supervisor = crew(processes=1)
        await asyncio.sleep(seconds)
        children = supervisor.children()
        supervisor.signal(signal.SIGTERM)
        assert await supervisor.ended() in {0, -signal.SIGTERM}, seconds
        await eventually("the end of the children", lambda: all(map(gone, children)))

    await asyncio.gather(*(stop_after(tenths / 10) for tenths in (0, 1, 3, 5, 7, 10)))
    assert await stage.raw.zcard(stage.keys.workers) == 0


async def test_handlers_get_an_empty_standard_input_and_not_the_line_to_the_supervisor(
    stage: Stage, crew: Callable[..., Crew]
) -> None:
    crew()
    handle = await stage.submit(handlers.listen)
    assert await handle.result(15) == ""
