"""Recurring schedules, as an operator meets them at a terminal."""

from __future__ import annotations

import pytest

from cli.terminal import Terminal, eventually, stop


def names(shop: Terminal) -> list[str]:
    return [info["name"] for info in shop.json("cron", "list")]


def test_a_schedule_is_added_listed_fired_paused_and_removed(shop: Terminal) -> None:
    added = shop.ok(
        *("cron", "add", "nightly", "add", "--cron", "30 2 * * *", "--tz", "Europe/Berlin"),
        *("--args", "[1, 2]", "--reason", "reports"),
    )
    assert added == "nightly: added\n"
    (info,) = shop.json("cron", "list")
    assert (info["task"], info["cron"], info["tz"]) == ("add", "30 2 * * *", "Europe/Berlin")
    assert (info["origin"], info["problem"], info["last_at"]) == ("operator", None, None)
    assert info["next_at"] is not None

    task_id = shop.ok("cron", "run", "nightly").strip()
    assert shop.ended(task_id) == "SUCCEEDED"
    assert shop.client.result(task_id) == 3
    assert shop.json("cron", "list")[0]["last_id"] == task_id

    assert "paused" in shop.ok("cron", "pause", "nightly")
    assert "was paused already" in shop.ok("cron", "pause", "nightly")
    assert shop.json("cron", "list")[0]["next_at"] is None
    assert "paused" in shop.ok("cron", "list")
    assert "resumed" in shop.ok("cron", "resume", "nightly")
    assert shop.json("cron", "list")[0]["next_at"] is not None

    assert shop.ok("cron", "remove", "nightly") == "nightly: removed\n"
    assert names(shop) == []
    actions = [act["action"] for act in shop.json("audit")]
    assert actions[-6:] == [
        *("cron.add", "cron.run", "cron.pause", "cron.pause", "cron.resume", "cron.remove")
    ]
    assert shop.json("verify")["kinds"] == []


def test_a_schedule_with_seconds_runs_by_itself(shop: Terminal) -> None:
    shop.ok("cron", "add", "often", "add", "--cron", "* * * * * *", "--args", "[2, 2]")
    found = eventually("a slot", lambda: shop.json("cron", "list")[0]["last_id"])
    assert shop.ended(found) == "SUCCEEDED"
    shop.ok("cron", "remove", "often")


@pytest.mark.parametrize(
    "wrong",
    [
        ["nightly", "add", "--cron", "0 0 30 2 *"],
        ["nightly", "add", "--cron", "@reboot"],
        ["nightly", "add", "--cron", "* * * * *", "--tz", "Mars"],
        ["nightly", "add", "--cron", "* * * * *", "--misfire", "never"],
        ["a:b", "add", "--cron", "* * * * *"],
        ["nightly", "os.system()", "--cron", "* * * * *"],
        ["nightly", "add", "--cron", "* * * * *", "--args", "1"],
        ["nightly", "add"],
    ],
    ids=" ".join,
)
def test_what_is_wrong_is_refused_in_one_line_and_nothing_is_stored(
    wrong: list[str], shop: Terminal
) -> None:
    done = shop.run("cron", "add", *wrong)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert names(shop) == []


@pytest.mark.parametrize("verb", ["remove", "pause", "resume", "run"])
def test_an_unknown_schedule_is_told(verb: str, shop: Terminal) -> None:
    done = shop.run("cron", verb, "nothing")
    assert (done.code, done.err) == (1, "dtq: there is no schedule of the name nothing\n")


def test_a_broken_schedule_is_listed_with_its_problem(shop: Terminal) -> None:
    shop.raw.hset(f"{shop.prefix}:cron", "broken", '{"task":"t","cron":"0 0 30 2 *"}\x1b[31m')
    assert "not a schedule" in shop.json("cron", "list")[0]["problem"]
    assert "\x1b" not in shop.ok("cron", "list")
    shop.ok("cron", "remove", "broken")


DECLARED = """
from dtq import task


@task(cron="0 0 1 1 *", tz="Europe/Berlin")
def yearly() -> None: ...
"""


def test_a_schedule_that_is_there_is_replaced_only_when_asked_and_then_stays(
    terminal: Terminal,
) -> None:
    (terminal.folder / "handlers.py").write_text(DECLARED)
    stop(terminal.start_worker())
    add = ("cron", "add", "yearly", "add", "--cron", "5 4 * * *")
    done = terminal.run(*add)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "dtq: there is a schedule of the name yearly already, declared by a handler: "
        "yearly at '0 0 1 1 *' in Europe/Berlin; it is replaced with --replace\n"
    )
    assert terminal.json("cron", "list")[0]["origin"] == "code"

    assert terminal.ok(*add, "--replace") == "yearly: added\n"
    assert "just so" in terminal.ok(*add), "the same again is no other one"
    assert "made by an operator: add at" in terminal.run(*add, "--tz", "Asia/Tokyo").err
    said = stop(terminal.start_worker()).err
    assert "an operator made a schedule of this name; it stays" in said
    assert terminal.json("cron", "list")[0]["origin"] == "operator"

    terminal.ok("cron", "remove", "yearly")
    stop(terminal.start_worker())
    assert terminal.json("cron", "list")[0]["origin"] == "code"


def test_the_audit_log_says_all_that_a_schedule_submits(terminal: Terminal) -> None:
    terminal.ok(
        *("cron", "add", "nightly", "echo", "--cron", "0 2 * * *", "--tz", "Asia/Tokyo"),
        *("--args", '["sales"]', "--queue", "mail", "--misfire", "all", "--overlap", "skip"),
    )
    assert terminal.json("audit")[-1]["scope"] == (
        "nightly task=echo cron='0 2 * * *' tz=Asia/Tokyo misfire=all overlap=skip queue=mail "
        'band=normal args=[["sales"],{}]'
    )
    terminal.ok("cron", "add", "long", "echo", "--cron", "0 2 * * *", "--args", f'["{"x" * 2000}"]')
    assert len(terminal.json("audit")[-1]["scope"]) == 1000
