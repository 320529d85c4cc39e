from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from dtq_cli.app import COMMANDS, GROUPS
from dtq_cli.lazy import load
from dtq_cli.main import run
from dtq_cli.reference import renewed

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
NAMES = [entry.name for entry in COMMANDS]
COMMON = {"--redis-url", "--prefix", "--partitions", "--json", "--help"}


def options_of(name: str) -> set[str]:
    entry = next(entry for entry in COMMANDS if entry.name == name)
    names = {name for parameter in load(entry).params for name in parameter.opts}
    return {name for name in names if name.startswith("-")} | {"--help"}


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for entry in COMMANDS:
        if " " not in entry.name:
            assert re.search(rf"\b{entry.name} +{entry.help.split()[0]}", out)
    assert all(re.search(rf"\b{name} ", out) for name in GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_lists_its_commands(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([group, "--help"]) == 0
    out = capsys.readouterr().out
    for entry in COMMANDS:
        if entry.name.startswith(f"{group} "):
            assert re.search(rf"\b{entry.word} +{entry.help.split()[0]}", out)


def test_help_imports_no_command() -> None:
    program = (
        "import sys; from dtq_cli.main import run; run(['--help']); "
        "print(*(m for m in sys.modules if m.startswith(('redis', 'dtq_', 'structlog'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "dtq_cli.app" in loaded
    assert not {m for m in loaded if m.startswith(("redis", "structlog", "dtq_cli.commands"))}
    assert not loaded & {"dtq_client", "dtq_worker", "dtq_core.store"}


@pytest.mark.parametrize("name", NAMES)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert f"dtq {name}" in out
    assert "--json" in out


@pytest.mark.parametrize("name", NAMES)
def test_each_command_takes_the_common_options(name: str) -> None:
    own_server = {"demo"}
    expected = {"--json", "--help"} if name in own_server else COMMON
    assert expected <= options_of(name)


def test_the_page_on_commands_is_what_the_commands_say() -> None:
    text = DOCS.read_text("utf-8")
    assert text == renewed(text), "make docs renews it"


def test_the_page_on_commands_names_the_common_options() -> None:
    intro = DOCS.read_text("utf-8").partition("## Run")[0]
    for option in COMMON | {"--version", "--install-completion", "--show-completion"}:
        assert option in intro


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"dtq {version('dtq')}\n"


def test_without_a_command_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    captured = capsys.readouterr()
    assert "submit" in captured.out
    assert captured.err == ""


def test_an_installed_program_starts() -> None:
    program = Path(sys.executable).with_name("dtq")
    done = subprocess.run([program, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_help_text_is_a_sentence() -> None:
    for entry in COMMANDS:
        assert inspect.cleandoc(entry.help).endswith(".")
        for parameter in load(entry).params:
            assert parameter.help, f"dtq {entry.name} {parameter.name} has no help"
