"""Who writes to Redis by hand has no code run (scenario P1): nothing is unpickled, or imported."""

from __future__ import annotations

import ast
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from worker.stage import Stage, eventually

ROOT = Path(__file__).parents[2]
FORBIDDEN = {"pickle", "marshal", "shelve", "yaml", "dill", "jsonpickle"}
LOADERS = {"apps/worker/dtq_worker/child.py", "apps/cli/dtq_cli/lazy.py"}
"""They import the handlers' modules and the commands, both named by who starts the process."""


class Bomb:
    """Whatever unpickles it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


NAMES = [
    "os.system",
    "builtins.eval",
    "__main__.x",
    "a.b:c",
    "rm -rf",
    "hostile",
    "hostile.run",
    "",
]


def hostile_fields(mark: Path) -> list[dict[str, bytes]]:
    bomb, command = pickle.dumps(Bomb(mark)), f"touch {mark}"
    payloads = [
        bomb,
        json.dumps([[{"py/object": "os.system", "py/reduce": [command]}], {}]).encode(),
        f"!!python/object/apply:os.system ['{command}']".encode(),
        json.dumps({"args": [command]}).encode(),
    ]
    fields = [{"payload": payload} for payload in payloads]
    fields += [{"spec": bomb}, {"spec": b"!!python/name:os.system"}]
    arguments = json.dumps([[command], {}]).encode()
    fields += [{"spec": json.dumps({"name": n}).encode(), "payload": arguments} for n in NAMES]
    return fields


async def test_p1_what_is_stored_runs_nothing_but_registered_handlers(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, seen = tmp_path / "mark", []
    (tmp_path / "hostile.py").write_text(f"open({str(mark)!r}, 'w')\ndef run(x): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    @stage.task(name="echo", max_attempts=1)
    async def echo(value: Any) -> Any:
        seen.append(value)
        return value

    bad = []
    for fields in hostile_fields(mark):
        handle = await stage.submit(echo, "replaced")
        await stage.raw.hset(stage.keys.task(handle.id), mapping=fields)  # type: ignore[misc]
        bad.append(handle)
    await stage.raw.xadd(stage.keys.stream("default", "normal"), {"id": pickle.dumps(Bomb(mark))})
    async with stage.worker(unknown_task_timeout=0.1, unknown_task_delay=0.05):
        good = [await stage.submit(echo, number) for number in range(5)]
        assert await stage.ended(*good) == ["SUCCEEDED"] * 5

        async def all_ended() -> bool:
            return all([(await handle.info()).status.terminal for handle in bad])

        await eventually("the end of all", all_ended)
    statuses = [(await handle.info()).status for handle in bad]
    assert set(statuses) <= {"DEAD_LETTERED", "SUCCEEDED"}
    # JSON that looks like somebody's object is an argument like any other.
    assert [value for value in seen if isinstance(value, str)] == []
    assert not mark.exists()
    good_result = stage.keys.result(good[0].id)
    await stage.raw.set(good_result, pickle.dumps(Bomb(mark)), ex=60)
    with pytest.raises(ValueError, match="not valid JSON"):
        await good[0].result(timeout=1)
    assert not mark.exists()


def test_p1_no_source_has_the_means_to() -> None:
    for folder in ("packages", "apps"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text("utf-8"))
            name = str(path.relative_to(ROOT))
            imported = {
                alias.name.partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.Import | ast.ImportFrom)
                for alias in [*node.names, ast.alias(getattr(node, "module", None) or "")]
            }
            called = {
                getattr(node.func, "id", getattr(node.func, "attr", ""))
                for node in ast.walk(tree)
                if isinstance(node, ast.Call)
            }
            assert not imported & FORBIDDEN, name
            assert not called & {"eval", "exec", "__import__"}, name
            assert "import_module" not in called or name in LOADERS, name
