"""Where a setting comes from, and what is refused."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dtq_core.errors import SettingsError
from dtq_core.settings import Settings, load, project_folder, resolve


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dtq.toml").write_text('prefix = "file"\nconcurrency = 7\nretention = 60\n')
    return tmp_path


def test_an_argument_comes_before_the_environment_before_the_file(folder: Path) -> None:
    environ = {"DTQ_PREFIX": "environment", "DTQ_CONCURRENCY": "8"}
    settings = load({"prefix": "argument"}, environ, folder)
    assert (settings.prefix, settings.concurrency, settings.retention) == ("argument", 8, 60)


def test_each_setting_tells_its_source(folder: Path) -> None:
    _, shown = resolve({"prefix": "argument"}, {"DTQ_CONCURRENCY": "8"}, folder)
    sources = {setting.name: setting.source for setting in shown}
    assert sources["prefix"] == "argument"
    assert sources["concurrency"] == "environment"
    assert sources["retention"] == "dtq.toml"
    assert sources["partitions"] == "default"
    assert set(sources) == {item.name for item in fields(Settings)}


def test_an_argument_that_is_none_was_not_given(folder: Path) -> None:
    assert load({"prefix": None}, {}, folder).prefix == "file"


def test_an_empty_variable_was_not_given(folder: Path) -> None:
    assert load({}, {"DTQ_PREFIX": ""}, folder).prefix == "file"


def test_foreign_variables_are_none_of_our_business(tmp_path: Path) -> None:
    assert load({}, {"DTQ_SOMETHING_ELSE": "1", "HOME": "/"}, tmp_path) == Settings()


def test_an_unknown_name_in_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dtq.toml").write_text("concurency = 5\n")
    with pytest.raises(SettingsError, match=r"no setting 'concurency' \(from: dtq.toml\)"):
        load({}, {}, tmp_path)


def test_a_file_that_is_no_toml_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "dtq.toml").write_text("prefix = \n")
    with pytest.raises(SettingsError, match=r"dtq\.toml is not valid TOML"):
        load({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DTQ_CONCURRENCY", "0"),
        ("DTQ_CONCURRENCY", "many"),
        ("DTQ_CONCURRENCY", "1.5"),
        ("DTQ_PARTITIONS", "5000"),
        ("DTQ_PROCESSES", "-1"),
        ("DTQ_VISIBILITY_TIMEOUT", "0.1"),
        ("DTQ_VISIBILITY_TIMEOUT", "nan"),
        ("DTQ_VISIBILITY_TIMEOUT", "inf"),
        ("DTQ_VISIBILITY_TIMEOUT", "soon"),
        ("DTQ_SHUTDOWN_GRACE", "-1"),
        ("DTQ_REAPER_INTERVAL", "0"),
        ("DTQ_PREFIX", "a:b"),
        ("DTQ_PREFIX", "{a}"),
        ("DTQ_BAND_ORDER", "random"),
        ("DTQ_LOG_FORMAT", "xml"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_variable(
    variable: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        load({}, {variable: value}, tmp_path)
    assert variable in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("concurrency = 0", "concurrency 0 is out of range"),
        ("concurrency = true", "concurrency True is out of range"),
        ("retention = 'soon'", "retention='soon' is not a number of seconds"),
        ("prefix = 5", "prefix 5 is not allowed"),
        ("redis_url = ''", "redis_url='' is not text"),
        ("log_level = []", "log_level=[] does not exist"),
    ],
)
def test_a_bad_value_of_the_file_is_refused_by_its_name_and_that_of_the_file(
    line: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "dtq.toml").write_text(line)
    with pytest.raises(SettingsError) as caught:
        load({}, {}, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/dtq.toml: {complaint}")


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ({"concurrency": 0}, "DTQ_CONCURRENCY 0 is out of range"),
        ({"retention": -1}, "DTQ_RETENTION=-1 is out of range"),
        ({"concurency": 5}, r"no setting 'concurency' \(from: argument\)"),
    ],
)
def test_a_bad_argument_is_refused_by_its_name(
    given: dict[str, Any], pattern: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=pattern):
        load(given, {}, tmp_path)


def test_a_refusal_stays_short_and_printable(tmp_path: Path) -> None:
    for value in ("x" * 10_000, "9" * 10_000, "\x1b[31m\n" * 100):
        with pytest.raises(SettingsError) as caught:
            load({}, {"DTQ_CONCURRENCY": value}, tmp_path)
        assert len(str(caught.value)) < 120
        assert str(caught.value).isprintable()


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "dtq.toml"
    path.write_bytes(b"prefix = '\xff'\n")
    with pytest.raises(SettingsError, match=r"dtq\.toml cannot be read"):
        load({}, {}, tmp_path)
    path.write_text(f"concurrency = {'9' * 10_000}\n")
    with pytest.raises(SettingsError, match=r"dtq\.toml is not valid TOML"):
        load({}, {}, tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(SettingsError, match=r"dtq\.toml cannot be read"):
        load({}, {}, tmp_path)


def test_the_project_is_the_nearest_folder_with_a_file_or_data_of_ours(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "src" / "package"
    inner.mkdir(parents=True)
    assert project_folder(inner) == inner.resolve()
    (tmp_path / "project" / ".dtq").mkdir()
    assert project_folder(inner) == (tmp_path / "project").resolve()
    (tmp_path / "project" / "src" / "dtq.toml").touch()
    assert project_folder(inner) == (tmp_path / "project" / "src").resolve()


def test_a_folder_above_counts_only_if_it_is_not_a_stranger_who_made_it_a_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inner = tmp_path / "mine"
    inner.mkdir()
    (tmp_path / "dtq.toml").touch()
    assert project_folder(inner) == tmp_path.resolve()
    if os.getuid() == 0:
        os.chown(tmp_path / "dtq.toml", 65_534, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 65_534)
    assert project_folder(inner) == inner.resolve()
    assert project_folder(tmp_path) == tmp_path.resolve()
