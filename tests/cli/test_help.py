from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from dtq_cli.app import COMMANDS
from dtq_cli.lazy import load
from dtq_cli.main import run

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
NAMES = [entry.name for entry in COMMANDS]
COMMON = {"--redis-url", "--prefix", "--partitions", "--json", "--help"}


def options_of(name: str) -> set[str]:
    entry = next(entry for entry in COMMANDS if entry.name == name)
    names = {name for parameter in load(entry).params for name in parameter.opts}
    return {name for name in names if name.startswith("-")} | {"--help"}


def section_of(name: str) -> str:
    """The part of the page that is about one command."""
    parts = re.split(r"^### ", DOCS.read_text("utf-8"), flags=re.MULTILINE)
    found = [part for part in parts if re.match(rf"`dtq {name}[` ]", part)]
    assert len(found) == 1, f"docs/cli.md has no section, or several, on {name}"
    return found[0]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for entry in COMMANDS:
        assert re.search(rf"\b{entry.name} +{entry.help.split()[0]}", out)


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
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"dtq {name}" in out
    assert "--json" in out


@pytest.mark.parametrize("name", NAMES)
def test_each_command_takes_the_common_options(name: str) -> None:
    own_server = {"demo"}
    expected = {"--json", "--help"} if name in own_server else COMMON
    assert expected <= options_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_on_commands_names_each_option(name: str) -> None:
    section = section_of(name)
    missing = {option for option in options_of(name) - COMMON if f"`{option}" not in section}
    assert not missing
    mentioned = set(re.findall(r"`(--[a-z-]+)", section))
    assert mentioned <= options_of(name) | COMMON


def test_the_page_on_commands_names_the_common_options() -> None:
    intro = DOCS.read_text("utf-8").partition("## Run")[0]
    for option in COMMON | {"--version", "--install-completion", "--show-completion"}:
        assert option in intro


def test_commands_are_listed_on_the_page_in_the_same_order() -> None:
    assert re.findall(r"^### `dtq ([a-z]+)", DOCS.read_text("utf-8"), re.MULTILINE) == NAMES


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
