"""What the documents say is so: links, names, tables, and every program on a page."""

from __future__ import annotations

import ast
import asyncio
import builtins
import importlib
import inspect
import io
import re
import runpy
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs

from dtq_cli.app import COMMANDS
from dtq_core import errors
from dtq_core.embedded import start_temporary
from dtq_core.keyspace import Keyspace, Partitions
from dtq_core.record import INFO_FIELDS
from dtq_core.settings import Settings
from dtq_core.states import TERMINAL, TRANSITIONS, Actor, Status, Transition
from dtq_core.verify import MEANINGS
from dtq_tasks import default_registry
from dtq_worker import Worker

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
GUARANTEES = ROOT / "docs/delivery-guarantees.md"
LIFECYCLE = ROOT / "docs/task-lifecycle.md"
LUA = "\n".join(
    path.read_text("utf-8") for path in (ROOT / "packages/core/dtq_core/lua").rglob("*.lua")
)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


class Block(NamedTuple):
    """A fenced block; ``file`` is the one that it says it is the text of."""

    language: str
    text: str
    file: str | None


_BLOCK = re.compile(
    r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_CODE = re.compile(r"`([^`\n]+)`")


@cache
def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def prose_of(page: Path) -> str:
    return _BLOCK.sub("", text_of(page))


def blocks_of(page: Path, language: str | None = None) -> list[Block]:
    found = [Block(m["language"], m["text"], m["file"]) for m in _BLOCK.finditer(text_of(page))]
    return [block for block in found if language in {None, block.language}]


def table_of(page: Path, *header: str) -> list[list[str]]:
    """The rows of the one table that has this header."""
    lines = text_of(page).splitlines()
    start = lines.index("| " + " | ".join(header) + " |")
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def code_in(text: str) -> list[str]:
    return _CODE.findall(text)


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else (page.parent / path).resolve()
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors_of(file), target


@each_page
def test_a_block_that_names_a_file_is_its_text(page: Path) -> None:
    for block in blocks_of(page):
        if block.file is not None:
            assert block.text == (ROOT / block.file).read_text("utf-8"), block.file


@each_page
def test_every_command_on_a_page_exists(page: Path) -> None:
    known = {entry.name.partition(" ")[0] for entry in COMMANDS}
    typed = [line[2:] for block in blocks_of(page, "console") for line in block.text.splitlines()]
    for text in [*typed, *code_in(prose_of(page))]:
        for word in re.findall(r"(?:^|; )dtq ([a-z]+)", text):
            assert word in known, text


@each_page
def test_every_error_on_a_page_exists(page: Path) -> None:
    for code in code_in(prose_of(page)):
        if re.fullmatch(r"[A-Z]\w+Error", code):
            assert hasattr(errors, code) or hasattr(builtins, code) or code == "CancelledError"


@each_page
def test_every_test_on_a_page_exists(page: Path) -> None:
    for path, name in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", text_of(page)):
        assert (ROOT / path).is_file(), path
        if name:
            assert re.search(rf"def {name}\(", (ROOT / path).read_text("utf-8")), name


def test_every_promise_names_its_test() -> None:
    tables = re.findall(
        r"^\|.* proved by \|\n\|[-|]+\n((?:\|.*\n)+)", text_of(GUARANTEES), re.MULTILINE
    )
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    for row in rows:
        assert re.search(r"tests/[\w/]+\.py::\w+", row.rpartition(" | ")[2]), row


def test_the_table_of_transitions_is_the_code() -> None:
    rows = table_of(LIFECYCLE, "script", "by", "from", "to", "when")
    told = [
        Transition(source, target, code_in(script)[0], Actor(by))
        for script, by, sources, targets, _ in rows
        for source in ([None] if sources == "nothing" else map(Status, code_in(sources)))
        for target in map(Status, code_in(targets))
    ]
    assert len(set(told)) == len(told)
    assert set(told) == set(TRANSITIONS)


def test_the_diagram_shows_every_move_and_no_other() -> None:
    (diagram,) = blocks_of(LIFECYCLE, "mermaid")
    drawn = {
        (source, target) for source, target in re.findall(r"(\S+) --> ([^\s:]+)", diagram.text)
    }
    moves = {(move.source or "[*]", str(move.target)) for move in TRANSITIONS}
    assert drawn == moves | {(str(status), "[*]") for status in TERMINAL}


def test_every_status_is_explained() -> None:
    rows = table_of(LIFECYCLE, "status", "means")
    assert sorted(code_in(status)[0] for status, _ in rows) == sorted(Status)


def test_the_table_of_events_is_what_the_scripts_publish() -> None:
    rows = table_of(LIFECYCLE, "type", "says")
    assert {code_in(kind)[0] for kind, _ in rows} == set(
        re.findall(r"'((?:TASK|QUEUE|CRON)_[A-Z]\w+)'", LUA)
    )


def test_the_table_of_what_may_disagree_is_the_code() -> None:
    rows = table_of(
        *(ROOT / "docs/operations.md", "kind", "what disagrees"),
        *("what `--repair` does, or what to do", "mended"),
    )
    assert {code_in(kind)[0]: rest for kind, *rest in rows} == {
        kind: [meaning.says, meaning.remedy, "yes" if meaning.mended else "no"]
        for kind, meaning in MEANINGS.items()
    }


def test_the_table_of_keys_is_the_keyspace() -> None:
    keys = Keyspace("P")
    spelled = {Partitions("P").meta}
    for name, member in inspect.getmembers(Keyspace):
        if isinstance(member, property):
            spelled.add(getattr(keys, name))
        elif inspect.isfunction(member) and not name.startswith("_"):
            names = list(inspect.signature(member).parameters)[1:]
            spelled.add(member(keys, *(f"<{name.removeprefix('task_')}>" for name in names)))
    rows = table_of(LIFECYCLE, "key", "type", "holds", "life")
    assert {code_in(key)[0] for key, *_ in rows} == spelled


def test_the_table_of_fields_is_what_the_scripts_keep() -> None:
    rows = table_of(LIFECYCLE, "field", "holds", "set by")
    told = {name for names, *_ in rows for name in code_in(names)}
    assert told >= set(INFO_FIELDS)
    assert told >= set(re.findall(r"\btask\.([a-z_]+)", LUA)) - {"id", "lua"}
    for name in told:
        assert re.search(rf"'{name}'|\b{name} = ", LUA), f"no script sets {name}"


def test_the_table_of_settings_is_the_code() -> None:
    rows = table_of(ROOT / "docs/settings.md", "setting", "default", "meaning", "read by")
    assert [code_in(name)[0] for name, *_ in rows] == [field.name for field in fields(Settings)]
    for field, (_, default, meaning, _) in zip(fields(Settings), rows, strict=True):
        assert meaning == field.metadata["meaning"]
        if field.name == "processes":
            assert default == "number of CPUs"
        elif field.default is None:
            assert default == "none"
        else:
            assert type(field.default)(code_in(default)[0]) == field.default


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers of examples and pages do not stay among those of other tests."""
    monkeypatch.setattr(default_registry, "_tasks", {})


@each_page
def test_every_python_block_can_be_run(page: Path, own_registry: None) -> None:
    """Handlers are made; of programs, which need a server, the syntax and imports are looked at."""
    for number, block in enumerate(blocks_of(page, "python")):
        tree = ast.parse(block.text)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        modules = [str(node.module) for node in imports]
        for node in imports:
            if str(node.module).startswith("dtq"):
                module = importlib.import_module(str(node.module))
                assert all(hasattr(module, alias.name) for alias in node.names), node.names
        if "tasks" not in modules and "Client" not in block.text and "Worker" not in block.text:
            made = ModuleType(f"{page.stem}_{number}")
            sys.modules[made.__name__] = made  # dataclasses look their module up
            try:
                default_registry._tasks.clear()
                exec(compile(tree, str(page), "exec"), made.__dict__)
            finally:
                del sys.modules[made.__name__]


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture
def deployment(
    redis_url: str,
    request: pytest.FixtureRequest,
    own_registry: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A prefix of the test's own, named in the environment as for a program of a user."""
    monkeypatch.setenv("DTQ_REDIS_URL", redis_url)
    monkeypatch.setenv("DTQ_PREFIX", re.sub(r"\W", "-", request.node.name)[-60:])
    monkeypatch.setenv("DTQ_SCHEDULER_TICK", "0.02")


@asynccontextmanager
async def worker_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A worker with the handlers of an example, whose programs find them as ``tasks``."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "tasks", raising=False)
    monkeypatch.setitem(sys.modules, "tasks", importlib.import_module("tasks"))
    worker = Worker()
    running = asyncio.create_task(worker.run())
    try:
        with capture_logs():  # what the worker says is no output of the program
            await worker.running.wait()
            yield
    finally:
        worker.stop()
        await running


def run_program(path: Path) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()


EXAMPLES = {
    "first_steps/submit.py": r"\w{32} (QUEUED|RUNNING)\nuser 42 was welcomed on attempt 1\n",
    "retries/main.py": r"EUR: 1\.08\n(  attempt .*\n){3}ZZZ: DEAD_LETTERED - GiveUp: there is .*\n",
    "idempotency_key/main.py": r"one task: True .*: True\ncharged 49.99 .*\nrefused: True\n",
    "web_client/main.py": r"(\(200, 'the report of 20\d\d'\)\n){5}\(404, 'no such report'\)\n",
}


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize("program", EXAMPLES)
async def test_an_example_does_what_it_shows(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "examples" / program
    async with worker_in(path.parent, monkeypatch):
        shown = await asyncio.to_thread(run_program, path)
    assert re.fullmatch(EXAMPLES[program], shown), shown


def test_every_example_is_run() -> None:
    folders = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == {program.partition("/")[0] for program in EXAMPLES}


@pytest.mark.usefixtures("deployment")
async def test_the_programs_of_getting_started_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are no example; the server that they name is the test's own."""
    page = ROOT / "docs/getting-started.md"
    programs = [
        block.text.replace('"redis://localhost:6379"', "")
        for block in blocks_of(page, "python")
        if block.file is None and "Client" in block.text
    ]
    assert programs
    async with worker_in(ROOT / "examples/first_steps", monkeypatch):
        for program in programs:
            await asyncio.to_thread(exec, compile(program, str(page), "exec"), {})


@pytest.mark.usefixtures("own_registry")
def test_the_tests_of_the_example_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "examples/retries"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "tasks", raising=False)
    found = runpy.run_path(str(folder / "test_tasks.py"))
    monkeypatch.delitem(sys.modules, "tasks")
    tests = [value for name, value in found.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        test()


def test_every_scenario_leads_to_its_tests_and_every_test_to_its_scenario() -> None:
    played: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for names in re.findall(r"^\s*(?:async )?def test_((?:[a-z]\d+_)+)", text_of(path), re.M):
            for name in names.strip("_").split("_"):
                played.setdefault(name.upper(), set()).add(str(path.relative_to(ROOT)))
    page = ROOT / "docs/scenarios.md"
    rows = table_of(page, "scenario", "what goes wrong elsewhere", "played in")
    assert {name: set(code_in(files)) for name, _, files in rows} == played
