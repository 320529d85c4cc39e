"""The Lua files keep the rules that no server checks."""

from __future__ import annotations

import re
import string
from importlib import resources
from pathlib import Path

import pytest

from dtq_core import scripts
from dtq_core.errors import InvalidNameError
from dtq_core.keyspace import GROUP, OVERDUE, Keyspace
from dtq_core.limits import MAX_WAKE_TOKENS, Band, check_name
from dtq_core.record import DEFAULT_RETENTION_MS
from dtq_core.scripts import Code, Script
from dtq_core.states import TERMINAL, TRANSITIONS, Status

LUA = Path(str(resources.files("dtq_core") / "lua"))
MAIN = {path.stem: path.read_text("utf-8") for path in LUA.glob("*.lua")}
LIB = {path.stem: path.read_text("utf-8") for path in (LUA / "lib").glob("*.lua")}
LOADED = {value.name: value for value in vars(scripts).values() if isinstance(value, Script)}


@pytest.mark.parametrize("name", MAIN)
def test_a_script_says_what_it_takes_does_and_answers(name: str) -> None:
    header = MAIN[name].partition("]]")[0]
    assert header.startswith(f"--[[ {name}: ")
    for part in ("KEYS[1] prefix", "ARGV", "Answers"):
        assert part in header
    targets = {move.target for move in TRANSITIONS if move.script == name}
    missing = [target for target in targets if target not in header]
    assert not missing or "no move" in header


@pytest.mark.parametrize("name", MAIN)
def test_a_script_names_every_code_that_it_answers(name: str) -> None:
    header, _, body = MAIN[name].partition("]]")
    answered = {code.name for code in Code if re.search(rf"\b{code.name}\b", body)}
    assert answered <= set(re.findall(r"[A-Z]+", header))
    assert not answered or re.search(r"^-- @include .*\bcodes\b", body, re.MULTILINE)


def test_every_code_is_answered_by_somebody() -> None:
    steps = [text for name, text in LIB.items() if name != "codes"]
    bodies = "".join([*(text.partition("]]")[2] for text in MAIN.values()), *steps])
    assert [code.name for code in Code if not re.search(rf"\b{code.name}\b", bodies)] == []


def test_every_file_is_loaded_and_every_loaded_script_has_a_file() -> None:
    assert set(LOADED) == set(MAIN)


def test_the_script_of_the_reclaim_has_the_name_of_the_contract() -> None:
    assert scripts._RECLAIM_LUA is scripts.RECLAIM


def test_every_shared_step_is_included_by_somebody() -> None:
    included = {
        name
        for text in (*MAIN.values(), *LIB.values())
        for line in re.findall(r"^-- @include (.+)$", text, re.MULTILINE)
        for name in line.split()
    }
    assert included == set(LIB)


@pytest.mark.parametrize("name", MAIN)
def test_a_shared_step_is_there_once(name: str) -> None:
    text = LOADED[name].text
    assert "@include" not in text
    functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
    assert len(functions) == len(set(functions))


def test_only_one_step_writes_a_status() -> None:
    lines = [
        (name, line)
        for name, text in {**MAIN, **LIB}.items()
        for line in text.splitlines()
        if re.search("""['"]status['"]""", line)
    ]
    assert [name for name, line in lines if "local FIELDS" not in line] == ["move"]
    assert all("'HMGET', task_key(id), unpack(FIELDS)" in LIB[n] for n, _ in lines if n != "move")


def test_no_script_decodes_what_users_gave() -> None:
    for name, text in {**MAIN, **LIB}.items():
        assert not re.search(r"cjson|cmsgpack|struct\.|loadstring", text), name


def test_no_script_walks_all_keys() -> None:
    for name, text in {**MAIN, **LIB}.items():
        assert not re.search(r"'(KEYS|SCAN|FLUSHALL|FLUSHDB)'", text), name


def test_only_one_step_reads_the_clock() -> None:
    assert [name for name, text in {**MAIN, **LIB}.items() if "'TIME'" in text] == ["now"]


def test_answer_codes_are_the_same_on_both_sides() -> None:
    found = dict(re.findall(r"^local (\w+) = (\d+)", LIB["codes"], re.MULTILINE))
    assert found == {code.name: str(code.value) for code in Code}


def test_keys_are_spelled_the_same_on_both_sides() -> None:
    keys = Keyspace("P")
    functions = {
        "task_key": keys.task("x"),
        "attempts_key": keys.attempts("x"),
        "result_key": keys.result("x"),
        "done_channel": keys.done("x"),
        "idem_key": keys.idempotency("x"),
        "wake_key": keys.wake("x"),
        "stats_key": keys.stats("x"),
        "worker_key": keys.worker("x"),
    }
    one = re.compile(r"^local function (\w+)\((\w+)\) return P \.\. '([^']+)' \.\. \2 end$", re.M)
    assert {name: f"P{text}x" for name, _, text in one.findall(LIB["keys"])} == functions
    assert "return P .. ':op:' .. id .. ':' .. name end" in LIB["keys"]
    assert keys.operation("x", "n") == "P:op:x:n"
    constants = dict(re.findall(r"^local (\w+) = P \.\. '([^']+)'$", LIB["keys"], re.MULTILINE))
    assert {name.lower(): f"P{text}" for name, text in constants.items()} == {
        "events": keys.events,
        "dlq": keys.dlq,
        "queues": keys.queues,
        "api_keys": keys.api_keys,
        "mark": keys.mark,
        "cron": keys.cron,
        "cron_schedule": keys.cron_schedule,
        "cron_state": keys.cron_state,
        "due_channel": keys.due,
        "audit": keys.audit,
        "audit_head": keys.audit_head,
        "workers": keys.workers,
        "expiry": keys.expiry,
        "retry_schedule": keys.retry_schedule,
        "delay_schedule": keys.delay_schedule,
    }
    assert "return P .. ':stream:' .. queue .. ':' .. band end" in LIB["keys"]
    assert keys.stream("q", "low") == "P:stream:q:low"
    assert f"'{keys.leader[1:]}'" in MAIN["lead"]


def test_what_both_sides_assume_is_the_same() -> None:
    assert f"local GROUP = '{GROUP}'" in LIB["keys"]
    assert f"local OVERDUE = '{OVERDUE}'" in LIB["keys"]
    assert f"local WAKE_CAP = {MAX_WAKE_TOKENS}" in LIB["wake"]
    assert f"DEFAULT_RETENTION_MS = {DEFAULT_RETENTION_MS}" in LIB["terminal"]


def test_statuses_are_sorted_the_same_on_both_sides() -> None:
    def named(table: str) -> set[str]:
        (inside,) = re.findall(rf"local {table} = {{([^}}]+)}}", LIB["task"])
        return set(re.findall(r"(\w+) = true", inside))

    assert named("TERMINAL") == set(TERMINAL)
    waiting = {Status.SCHEDULED, Status.QUEUED, Status.RETRYING}
    assert named("WAITING") == waiting
    assert set(Status) == waiting | TERMINAL | {Status.RUNNING}


def test_bands_are_the_same_on_both_sides() -> None:
    (inside,) = re.findall(r"local BANDS = {([^}]+)}", LIB["keys"])
    assert re.findall(r"(\w+) = true", inside) == list(Band)


def _is_name(text: str) -> bool:
    try:
        return check_name("name", text) == text
    except InvalidNameError:
        return False


def test_a_name_is_the_same_on_both_sides() -> None:
    assert "'^[%w_.%-]+$'" in LIB["task"]
    lua = {*string.ascii_letters, *string.digits, *"_.-"}
    assert {chr(n) for n in range(256) if _is_name(chr(n))} == lua
