"""Names that a library might take for its own: they are the user's, and arrive untouched."""

from __future__ import annotations

from typing import Any

import pytest

from dtq_core.errors import InvalidNameError
from worker.stage import Stage

WORDS = (
    *("timeout", "queue", "priority", "delay", "eta", "ttl", "retries", "task_id", "id", "key"),
    *("ctx", "name", "unique", "band", "cron", "tz", "self", "task", "options", "payload"),
)


async def test_k4_parameters_of_any_name_arrive_untouched(stage: Stage) -> None:
    @stage.task
    async def handler(
        timeout: Any,
        queue: Any,
        priority: Any,
        delay: Any,
        eta: Any,
        ttl: Any,
        retries: Any,
        task_id: Any,
        id: Any,  # noqa: A002  # that is the point
        key: Any,
        ctx: Any,
        name: Any,
        unique: Any,
        band: Any,
        cron: Any,
        tz: Any,
        task: Any,
        options: Any,
        payload: Any,
        **more: Any,
    ) -> list[Any]:
        return [timeout, queue, priority, delay, eta, ttl, retries, task_id, id, key, ctx, name,
                unique, band, cron, tz, task, options, payload, more]  # fmt: skip

    names = [word for word in WORDS if word != "self"]
    values: list[Any] = [None, True, 0, "", "a:b", {"x": [1]}, 1.5, "STREAMS", ">", "{a}"]
    given = {name: values[n % len(values)] for n, name in enumerate(names)}
    more = {"args": [1], "kwargs": {"a": 1}, "self": "me"}
    async with stage.worker(scheduler=False):
        by_name = await stage.submit_by_name("handler", kwargs={**given, **more})
        got = await by_name.result(10)
    assert got[:-1] == list(given.values())
    assert got[-1] == more


@pytest.mark.parametrize(
    "name",
    [
        *("a:b", "x:result", "{a}", "*", "", " ", "a b", "a\n", "x" * 1_000_000, ">", "\U0001f600"),
        *("e\u0301", "\u00e9", 123, None, True),
    ],
    ids=lambda name: repr(name)[:12],
)
async def test_k4_one_rule_for_names_everywhere(name: Any, stage: Stage) -> None:
    with pytest.raises(InvalidNameError):
        await stage.client.submit_by_name(name)
    with pytest.raises(InvalidNameError):
        await stage.client.submit_by_name("handler", queue=name)
    with pytest.raises(InvalidNameError):
        await stage.client.get(name)
    assert await stage.raw.keys(f"{stage.keys.prefix}:*") == []


@pytest.mark.parametrize("name", ["STREAMS", "..", "0", "123", "a.b-c_d"])
async def test_k4_names_that_only_look_odd_work(name: str, stage: Stage) -> None:
    @stage.task(name=name, queue=name)
    async def handler() -> str:
        return name

    async with stage.worker(scheduler=False):
        assert await (await stage.submit(handler)).result(10) == name
