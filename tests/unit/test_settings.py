"""Where a setting comes from, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

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


def test_the_project_is_the_nearest_folder_with_a_file_or_data_of_ours(tmp_path: Path) -> None:
    inner = tmp_path / "project" / "src" / "package"
    inner.mkdir(parents=True)
    assert project_folder(inner) == inner.resolve()
    (tmp_path / "project" / ".dtq").mkdir()
    assert project_folder(inner) == (tmp_path / "project").resolve()
    (tmp_path / "project" / "src" / "dtq.toml").touch()
    assert project_folder(inner) == (tmp_path / "project" / "src").resolve()
