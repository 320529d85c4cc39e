import json
from datetime import UTC, datetime

import msgspec
import pytest

from dtq_cli.output import Column, escape, note, print_fields, print_json, print_table, to_json
from dtq_cli.times import ago, between, clock, duration, moment
from dtq_core.clock import rfc3339

HOSTILE = [
    "\x1b[31mred",
    "\x1b]0;a title\x07",
    "\x1b]8;;http://example.org\x07link\x1b]8;;\x07",
    "\x9b2J",
    "a\rb",
    "two\nlines",
    "\u202egnp.exe",
    "\u2066isolated\u2069",
    "para\u2029graph",
    "\x7f\x00\t",
    "tag \U000e0041",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_shown_is_one_printable_line(text: str) -> None:
    assert escape(text).isprintable()
    assert escape(text) != text


@pytest.mark.parametrize("text", ["", "plain", "Zoë", "日本語", "a\\b", "[bold]x[/]"])
def test_printable_text_is_shown_as_it_is(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("text", [*HOSTILE, "Zoë", "日本語", '"quoted" \\'])
def test_json_is_printable_and_says_the_same(text: str) -> None:
    written = to_json({"value": text})
    assert written.isprintable()
    assert json.loads(written) == {"value": text}
    assert msgspec.json.decode(written) == {"value": text}


def test_letters_of_all_languages_stay_readable_in_json() -> None:
    assert to_json(["Zoë", "\u202e"]) == '["Zoë","\\u202e"]'


@pytest.mark.parametrize("text", [*HOSTILE, "[red]x[/red]", "[link=http://x]y[/link]", ":smile:"])
def test_data_in_tables_is_inert(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table([Column("NAME"), Column("QUEUE", cut=True)], [(text, text)])
    print_fields([("name", text)])
    header, row, field = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "QUEUE"]
    assert row == f"{escape(text)}  {escape(text)}".rstrip()
    assert field == f"name  {escape(text)}".rstrip()


def test_nothing_is_cut_or_left_out_where_stdout_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    columns = [Column("A", cut=True), Column("B", folded=True), Column("C", extra=True)]
    print_table(columns, [("a" * 300, "b " * 300, "c")])
    _, row = capsys.readouterr().out.splitlines()
    assert "a" * 300 in row
    assert "b " * 300 in row
    assert row.endswith("c")


def test_a_note_is_one_line_of_bounded_length(capsys: pytest.CaptureFixture[str]) -> None:
    note("two\nlines " + "x" * 100_000)
    out = capsys.readouterr().err
    assert out.startswith("dtq: two\\nlines x")
    assert out.count("\n") == 1
    assert len(out) < 1_100


def test_json_is_utf_8_whatever_the_terminal_says(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    print_json("Zoë")
    assert capfdbinary.readouterr().out == '"Zoë"\n'.encode()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0123, "0.012 s"),
        (1.5, "1.5 s"),
        (59.6, "60 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (86_399, "23 h"),
        (172_800, "2 d"),
    ],
)
def test_a_duration_is_said_in_its_largest_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_times_in_words() -> None:
    assert ago(None) is None
    assert ago("2020-01-01T00:00:00.000Z").endswith(" d ago")
    assert ago("2999-01-01T00:00:00.000Z").startswith("in ")
    assert between("2020-01-01T00:00:00.000Z", "2020-01-01T00:00:02.500Z") == "2.5 s"
    assert between("2020-01-01T00:00:02.000Z", "2020-01-01T00:00:01.000Z") == "0 s"
    assert between(None, "2020-01-01T00:00:01.000Z") is None


def test_a_moment_of_another_day_has_its_date() -> None:
    now = rfc3339(int(datetime.now(UTC).timestamp() * 1000))
    assert moment(now) == clock(now)
    assert moment("2020-02-28T12:00:00.500000Z") == "2020-02-28 " + clock("2020-02-28T12:00:00.5Z")
