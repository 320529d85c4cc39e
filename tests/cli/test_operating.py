"""What operators do by hand, on a deployment in which a worker runs."""

from __future__ import annotations

import time

from cli.terminal import Terminal

REASON = "the provider\u202eis down"


def test_a_paused_queue_rests_until_it_is_resumed(shop: Terminal) -> None:
    shop.ended(shop.submit("sleep", 0, queue="mail"))
    assert "mail: paused" in shop.ok("pause", "mail", "--reason", "the provider is down")
    assert "was paused already" in shop.ok("pause", "mail")
    waiting = shop.submit("sleep", 0, queue="mail")
    assert shop.ended(shop.submit("add", 1, 2)) == "SUCCEEDED", "another queue goes on"
    time.sleep(0.5)  # what must not happen has no condition to wait for
    assert shop.client.get(waiting).status == "QUEUED"
    assert "mail (paused)" in shop.ok("queues")
    assert shop.json("resume", "mail")[0]["changed"] is True
    assert shop.ended(waiting) == "SUCCEEDED"
    actions = [(act["action"], act["changed"], act["reason"]) for act in shop.json("audit")]
    assert actions[-3:] == [
        ("queue.pause", 1, "the provider is down"),
        ("queue.pause", 0, ""),
        ("queue.resume", 1, ""),
    ]


def test_an_unknown_queue_and_a_bad_reason_are_refused_and_nothing_is_written(
    shop: Terminal,
) -> None:
    before = shop.json("audit")
    done = shop.run("pause", "typo")
    assert (done.code, done.err) == (1, "dtq: no queue of the name typo was ever used here\n")
    shop.ended(shop.submit("sleep", 0, queue="mail"))
    for reason in (REASON, "x" * 2000):
        done = shop.run("pause", "mail", "--reason", reason)
        assert done.code == 2
        assert done.err.count("\n") == 1
    assert shop.json("audit") == before


def test_a_cancel_at_a_terminal_is_in_the_audit_log_and_one_of_a_client_is_not(
    shop: Terminal,
) -> None:
    before = len(shop.json("audit"))
    task_id = shop.submit("add", 1, 2, delay=600)
    shop.ok("cancel", task_id, "--reason", "wrong address")
    shop.ok("cancel", task_id)
    shop.client.cancel(shop.submit("add", 1, 2, delay=600))
    (act,) = shop.json("audit")[before:]
    assert (act["action"], act["scope"]) == ("task.cancel", f"id={task_id}")
    assert (act["reason"], act["changed"]) == ("wrong address", 1)
    assert shop.client.get(task_id).error == "wrong address"


def test_verify_says_what_disagrees_and_mends_it(shop: Terminal) -> None:
    shop.ended(shop.submit("add", 1, 2))
    assert "everything agrees" in shop.ok("verify")
    task_id = shop.submit("add", 1, 2, delay=600)
    shop.raw.zrem(f"{shop.prefix}:delay:schedule", task_id)
    done = shop.run("verify")
    assert done.code == 1
    assert "unscheduled" in done.out
    assert task_id in done.out
    assert "1 thing disagrees; --repair mends" in done.err
    mended = shop.json("verify", "--repair", "--reason", "somebody deleted it")
    assert (mended["left"], mended["kinds"][0]["mended"]) == (0, 1)
    assert shop.json("verify")["kinds"] == []
    assert shop.json("audit")[-1]["action"] == "verify.repair"


def test_the_check_of_the_audit_log_fails_once_it_was_changed(shop: Terminal) -> None:
    """The last one here: it leaves the log of this deployment broken."""
    shop.ended(shop.submit("sleep", 0, queue="mail"))
    shop.ok("pause", "mail")
    shop.ok("resume", "mail")
    assert "entries as written; hash " in shop.ok("audit", "--check")
    newest = shop.raw.xrevrange(f"{shop.prefix}:audit", count=1)[0][0]
    shop.raw.xdel(f"{shop.prefix}:audit", newest)
    done = shop.run("audit", "--check", "--json")
    assert done.code == 1
    assert "was changed: the log ends at entry" in done.err
    assert shop.json("audit"), "it is shown all the same"
