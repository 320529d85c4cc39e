"""`dtq demo`: real runs on real folders, and the code that says whether a run adds up."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq import Status, TaskInfo
from dtq_cli.demo import command, finding
from dtq_cli.demo.compare import compare
from dtq_cli.demo.crew import Kill
from dtq_cli.demo.files import (
    File,
    FolderError,
    Stamp,
    Survey,
    decode_path,
    encode_path,
    survey,
)
from dtq_cli.demo.finding import Finding, read_in_pieces
from dtq_cli.demo.journal import Execution
from dtq_cli.demo.ledger import Evidence, disagreements, recovery, settle
from dtq_cli.demo.plain import read_plainly
from dtq_cli.demo.report import Report
from dtq_cli.demo.summary import summarize
from dtq_cli.main import run
from dtq_core.reads import QueueInfo
from support.queues import queue

RUN_LIMIT_S = 60
MIB = 1_048_576

CONTENTS = {
    b"readme.txt": b"one two\nthree\n",
    b"copy of readme": b"one two\nthree\n",
    b"empty": b"",
    b"picture.txt": b"\x89PNG\r\n\x1a\n" + bytes(100),
    b"noise": bytes(range(256)) * 40,
    b"run": b"#!/bin/sh\nexit\n",
    b"line\nbreak": b"a b c",
    b"[red]100%": b"markup\n",
    b"\xc3\xbc\xf0\x9f\x98\x80": "ü 😀\n".encode(),
    b"below/deep/one": b"1\n",
    **{b"many/%d" % number: b"%d\n" % number for number in range(30)},
}
ODD_NAME = b"not utf-8 \xff\xfe"


def write_folder(root: Path) -> None:
    base = os.fsencode(root)
    for name, data in CONTENTS.items():
        path = os.path.join(base, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(data)
    if sys.platform == "linux":  # elsewhere a file system may refuse such a name
        Path(os.fsdecode(os.path.join(base, ODD_NAME))).write_bytes(b"odd\n")
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to(root)
    (root / "link").symlink_to(root / "readme.txt")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("not to be read")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    write_folder(made)
    return made


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts the demo as a user would, whose own settings would all lead nowhere."""
    private = tmp_path / "tmp"
    private.mkdir()
    (tmp_path / "dtq.toml").write_text("this is not = = TOML")
    environ = {
        **os.environ,
        "TMPDIR": str(private),
        "DTQ_REDIS_URL": "redis://127.0.0.1:1",
        "DTQ_PREFIX": "not allowed!",
        "DTQ_CONCURRENCY": "many",
    }
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "dtq_cli.main", "demo", *arguments],
            cwd=tmp_path,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    assert list(private.iterdir()) == []


def report_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 0, err
    report: dict[str, Any] = json.loads(out)
    return report


def test_a_run_finds_what_is_there_and_loses_nothing_twice_in_a_row(
    start: Any, folder: Path
) -> None:
    for _ in range(2):
        report = report_of(start(str(folder), "--json"))
        check_findings(report)
        check_ledger(report)


def check_findings(report: dict[str, Any]) -> None:
    contents = list(CONTENTS.values()) + [b"odd\n"] * (sys.platform == "linux")
    kinds = {total["kind"]: total["files"] for total in report["summary"]["kinds"]}
    texts = len(contents) - 4
    assert kinds == {
        "text (UTF-8)": texts,
        "script": 1,
        "empty": 1,
        "PNG image": 1,
        "other binary": 1,
    }
    assert report["summary"]["files"] == report["agreed"] == len(contents)
    assert report["summary"]["bytes"] == sum(map(len, contents))
    assert report["summary"]["largest"][0] == {
        "path": "noise",
        "kind": "other binary",
        "bytes": 10_240,
    }
    [same] = [same for same in report["summary"]["duplicates"] if same["bytes"] > 3]
    assert same["paths"] == ["copy of readme", "readme.txt"]
    assert report["left_out"] == {
        "folders of tools": 1,
        "links": 2,
        "pipes, sockets and devices": 1,
    }


def check_ledger(report: dict[str, Any]) -> None:
    files = report["summary"]["files"]
    ledger, kill = report["ledger"], report["kill"]
    assert report["ok"]
    assert report["disagreements"] == []
    assert ledger["lost"] == 0
    assert ledger["accepted"] == files + 1
    assert ledger["succeeded"] == files
    assert ledger["dead_lettered"] == 1
    assert ledger["reclaimed"] >= kill["recovery"]["running"] >= 1
    assert ledger["executions"] == ledger["accepted"] + sum(ledger["again"].values())
    assert ledger["again"]["after the kill"] >= 1
    assert ledger["again"]["after a failure"] >= 2
    assert kill["recovery"]["after_s"] < 15, "it waited for the time-out of the killed worker"


def test_an_empty_folder_is_enough(start: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report = report_of(start("empty", "--json"))
    assert report["ledger"]["accepted"] == 1
    assert report["ledger"]["reclaimed"] == 1


def test_people_read_plain_lines_where_there_is_no_terminal(start: Any, folder: Path) -> None:
    process = start(str(folder), "--limit", "3")
    out, err = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == 0, err
    assert "\x1b" not in out
    assert "SIGKILL for" in out
    assert "--limit" in out
    assert re.search(r"lost +0\b", out)
    assert "nothing was lost" in out
    assert len(out.splitlines()) < 45


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(
    start: Any, folder: Path, number: signal.Signals
) -> None:
    process = start(str(folder))
    pids: list[int] = []
    while not pids:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        pids = [int(pid) for pid in re.findall(r"processes (\d+) and (\d+)", line) for pid in pid]
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert len(err.splitlines()) == 1
    assert not any(map(lives, pids))


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "name", ["nowhere", "dtq.toml", "/proc" if os.path.exists("/proc") else ""]
)
def test_what_is_no_folder_of_files_is_refused_in_one_line(start: Any, name: str) -> None:
    process = start(name or "nowhere")
    out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert out == ""
    assert len(err.splitlines()) == 1


def test_a_disagreement_is_named_and_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def disagree(*_: object) -> Report:
        return REPORT

    monkeypatch.setattr(command, "play", disagree)
    assert run(["demo", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "the earth is flat" in out
    assert "/tmp/dtq-demo-1" in out
    assert run(["demo", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["disagreements"] == ["the earth is flat"]


# --- the folder


def test_a_survey_stops_at_its_limits(folder: Path) -> None:
    (folder / "large").write_bytes(bytes(2_000_000))
    found = survey(str(folder), limit=5, max_bytes=MIB)
    assert len(found.files) == 5
    assert found.capped
    everything = survey(str(folder), limit=1_000, max_bytes=MIB)
    assert not everything.capped
    assert everything.left_out["files too large"] == 1


def test_a_survey_goes_round_in_no_circle_and_opens_no_pipe(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        found = survey(".", limit=1_000, max_bytes=MIB)
    assert len(found.files) == len(CONTENTS) + (sys.platform == "linux")
    assert found.left_out["pipes, sockets and devices"] == 2
    assert found.root == str(folder)


def test_a_folder_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(FolderError, match="No such file"):
        survey("/no/such/folder", limit=1, max_bytes=1)
    with pytest.raises(FolderError, match="null"):
        survey("a\0b", limit=1, max_bytes=1)


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_any_path_travels_as_text(name: bytes) -> None:
    path = os.fsdecode(name)
    assert decode_path(encode_path(path)) == path
    assert encode_path(path).isascii()


def test_what_is_no_plain_file_any_more_is_not_opened(folder: Path) -> None:
    for name in ("pipe", "link", "many", "nowhere"):
        with pytest.raises(OSError, match=r"\w"):
            read_in_pieces(str(folder / name), MIB)


def test_a_file_that_has_grown_too_large_counts_as_unreadable(folder: Path) -> None:
    path = str(folder / "noise")
    with pytest.raises(OSError, match="too large"):
        read_in_pieces(path, 1_000)
    assert read_plainly([File(path, STAMP)], 1_000) == ["it has grown too large"]


TEXTS = st.text(st.sampled_from("ab \n\t\r\x0b\x0c\x1c\x00é€😀\xa0"))


@given(st.one_of(st.binary(max_size=60), TEXTS.map(str.encode)), st.integers(1, 9))
def test_both_ways_to_examine_a_file_agree(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, piece_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "examined"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "_PIECE_BYTES", piece_bytes)
        in_pieces = read_in_pieces(str(path), MIB)
    assert read_plainly([File(str(path), in_pieces.stamp)], MIB) == [in_pieces]
    if in_pieces.kind in {"text (UTF-8)", "script"}:
        assert in_pieces.lines == data.count(b"\n")
        assert in_pieces.words == len(re.findall(rb"[^ \t\n\r\x0b\x0c]+", data))


# --- the comparison


STAMP = Stamp(1, 2, 3)
FOUND = Finding("text (UTF-8)", 1, 1, 1, "00", STAMP)


def test_what_both_sides_say_the_same_of_agrees(tmp_path: Path) -> None:
    files = [File("/a", STAMP), File("/b", STAMP)]
    result = compare(files, [FOUND, "denied"], [FOUND, "No such file"])
    assert result.agreed == 1
    assert result.unreadable == ["/b"]
    assert not result.changed
    assert not result.disagreements


@pytest.mark.parametrize("theirs", [msgspec.structs.replace(FOUND, words=2), "denied"])
def test_a_difference_in_a_file_that_stayed_the_same_is_a_disagreement(
    tmp_path: Path, theirs: Finding | str
) -> None:
    file, ours = unchanged(tmp_path)
    if isinstance(theirs, Finding):
        theirs = msgspec.structs.replace(theirs, stamp=file.stamp)
    for pair in ((ours, theirs), (theirs, ours)):
        result = compare([file], pair[:1], pair[1:])
        assert result.agreed == 0
        assert not result.changed
        [line] = result.disagreements
        assert file.path in line


def test_a_difference_in_a_file_that_changed_is_none(tmp_path: Path) -> None:
    file, ours = unchanged(tmp_path)
    other = msgspec.structs.replace(ours, words=9, stamp=Stamp(9, 9, 9))
    assert compare([file], [ours], [other]).changed == [file.path]
    os.unlink(file.path)
    assert compare([file], [ours], ["No such file"]).changed == [file.path]


def unchanged(folder: Path) -> tuple[File, Finding]:
    (folder / "file").write_text("word\n")
    [file] = survey(str(folder), 1, MIB).files
    return file, read_in_pieces(file.path, MIB)


# --- the ledger

PID, VICTIM = 100, 200
KILL = Kill(VICTIM, at_s=10.0, after=1)


def record(task_id: str, status: Status, attempt: int = 1, crashes: int = 0) -> TaskInfo:
    return TaskInfo(
        id=task_id,
        name="demo.examine",
        queue="demo",
        band="normal",
        status=status,
        attempt=attempt,
        max_attempts=5,
        crashes=crashes,
    )


def counters(**values: int) -> QueueInfo:
    return queue("demo", None, **values)


SOUND = Evidence(
    accepted=["once", "flaky", "killed", "unsaved", "doomed"],
    records=[
        record("once", Status.SUCCEEDED),
        record("flaky", Status.SUCCEEDED, attempt=2),
        record("killed", Status.SUCCEEDED, attempt=2, crashes=1),
        record("unsaved", Status.SUCCEEDED, attempt=2, crashes=1),
        record("doomed", Status.DEAD_LETTERED, attempt=2, crashes=1),
    ],
    counters=counters(reclaimed=3),
    executions=[
        Execution("once", 1, PID, 1.0, "returned"),
        Execution("flaky", 1, VICTIM, 2.0, "raised"),
        Execution("flaky", 2, PID, 3.0, "returned"),
        Execution("killed", 1, VICTIM, 9.0),
        Execution("unsaved", 1, VICTIM, 9.1, "returned"),
        Execution("doomed", 2, PID, 11.0, "raised"),
        Execution("killed", 2, PID, 10.5, "returned"),
        Execution("unsaved", 2, PID, 10.7, "returned"),
    ],
    kill=KILL,
    doomed="doomed",
)


def test_a_sound_run_adds_up() -> None:
    ledger = settle(SOUND)
    assert ledger.accepted == 5
    assert ledger.succeeded == 4
    assert ledger.dead_lettered == 1
    assert ledger.lost == 0
    assert ledger.executions == 8
    assert ledger.run_again == 3
    assert ledger.again == {"after a failure": 1, "after the kill": 1, "done, not stored": 1}
    assert ledger.retried == 1
    assert ledger.reclaimed == 3
    assert ledger.not_begun == 1
    assert list(disagreements(SOUND, ledger)) == []
    seen = recovery(SOUND.executions, KILL)
    assert (seen.running, seen.back, seen.after_s) == (1, 1, 0.5)


def test_a_kill_on_the_last_attempt_adds_up_too() -> None:
    last = replace(
        SOUND,
        records=[*without("doomed"), record("doomed", Status.DEAD_LETTERED, attempt=3, crashes=1)],
        counters=counters(reclaimed=4),
    )
    assert list(disagreements(last, settle(last))) == []


def without(*task_ids: str) -> list[TaskInfo]:
    return [record for record in SOUND.records if record.id not in task_ids]


@pytest.mark.parametrize(
    ("evidence", "what"),
    [
        (replace(SOUND, records=without("once")), "once was accepted and is in no final state"),
        (
            replace(SOUND, records=[*without("once"), record("once", Status.RUNNING)]),
            "once was accepted and is in no final state",
        ),
        (
            replace(SOUND, records=[*without("once"), record("once", Status.EXPIRED)]),
            "1 task neither succeeded nor was dead-lettered",
        ),
        (
            replace(SOUND, records=[*without("doomed"), record("doomed", Status.SUCCEEDED, 2, 1)]),
            "doomed cannot succeed, and is SUCCEEDED",
        ),
        (replace(SOUND, kill=None), "no worker could be killed"),
        (replace(SOUND, counters=counters(reclaimed=2)), "dtq counted 2 reclaimed"),
        (
            replace(SOUND, executions=[*SOUND.executions, SOUND.executions[0]]),
            "attempt 1 of task once was started 2 times",
        ),
        (
            replace(SOUND, executions=[*SOUND.executions, Execution("alien", 1, PID, 0, "raised")]),
            "alien was run and never accepted",
        ),
        (replace(SOUND, executions=SOUND.executions[1:]), "once was started 0 times"),
        (
            replace(SOUND, executions=[*SOUND.executions, Execution("once", 2, PID, 9, "raised")]),
            "1 task was started again for no known reason",
        ),
    ],
)
def test_what_does_not_add_up_is_named(evidence: Evidence, what: str) -> None:
    lines = list(disagreements(evidence, settle(evidence)))
    assert any(what in line for line in lines), lines


REPORT = Report(
    ok=False,
    folder="/folder",
    seconds=1,
    plain_seconds=1,
    left_out={},
    capped=False,
    summary=summarize(Survey("/folder", [], {}, False), []),
    agreed=0,
    unreadable=["a"],
    changed=["b", "c"],
    ledger=settle(SOUND),
    kill=None,
    disagreements=["the earth is flat"],
    evidence="/tmp/dtq-demo-1",
)
