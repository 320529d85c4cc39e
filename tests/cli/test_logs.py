"""What handlers write: one line each, like the worker's own, with the id of their task."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
import structlog

from cli.terminal import Terminal, stop
from dtq import AttemptFilter, add_attempt
from dtq_core.logs import bind_attempt

TALKERS = """
import asyncio
import logging

import structlog

from dtq import fixed, task

log = structlog.get_logger()
standard = logging.getLogger("shop.orders")


def talk(text):
    log.info(text, who="structlog")
    standard.info(text, extra={"who": "logging"})
    log.debug("not shown")
    standard.debug("not shown")


@task
async def on_loop(text: str) -> None:
    talk(text)
    await asyncio.sleep(0.05)
    await asyncio.create_task(later(text))


async def later(text: str) -> None:
    talk(f"later {text}")


@task
def in_thread(text: str) -> None:
    talk(text)


@task(retry=fixed(0.05))
def twice(text: str) -> None:
    talk(text)
    try:
        raise ValueError("once")
    except ValueError:
        standard.exception("caught")
    raise ValueError("again")
"""


def lines_of(terminal: Terminal, *submitted: tuple[str, str], **settings: Any) -> list[Any]:
    """Run tasks of a worker to their ends, and return what it has written."""
    (terminal.folder / "talkers.py").write_text(TALKERS)
    worker = terminal.start("worker", "talkers", log_format="json", **settings)
    for name, text in submitted:
        terminal.ended(terminal.submit(name, text, max_attempts=2))
    return [json.loads(line) for line in stop(worker).err.splitlines()]


def test_lines_of_handlers_name_their_task_wherever_they_run(terminal: Terminal) -> None:
    texts = [("on_loop", "a"), ("on_loop", "b"), ("in_thread", "c")]
    lines = lines_of(terminal, *texts, log_level="info")
    ids = {text: set() for text in ("a", "b", "c", "later a", "later b")}  # type: ignore[var-annotated]
    told = [line for line in lines if line["event"] in ids]
    assert len(told) == 2 * len(ids)
    for line in told:
        ids[line["event"]].add(line["task_id"])
        assert (line["attempt"], line["level"]) == (1, "info")
        assert line["timestamp"].endswith("Z")
        assert line.get("logger") == ("shop.orders" if line["who"] == "logging" else None)
    assert all(len(found) == 1 for found in ids.values())
    assert ids["a"] == ids["later a"] != ids["b"] == ids["later b"]


def test_each_attempt_has_its_number_and_a_traceback_is_one_line(terminal: Terminal) -> None:
    lines = lines_of(terminal, ("twice", "x"), log_level="info")
    assert [line["attempt"] for line in lines if line["event"] == "x"] == [1, 1, 2, 2]
    caught = [line for line in lines if line["event"] == "caught"]
    assert [(line["attempt"], line["level"]) for line in caught] == [(1, "error"), (2, "error")]
    assert "ValueError: once" in caught[0]["exception"]


def test_a_success_is_one_line_at_debug_and_none_at_info(terminal: Terminal) -> None:
    ended = "attempt ended"
    assert ended not in {line["event"] for line in lines_of(terminal, ("on_loop", "a"))}
    lines = lines_of(terminal, ("on_loop", "b"), ("twice", "c"), log_level="debug")
    found = [(line["name"], line["outcome"]) for line in lines if line["event"] == ended]
    assert found == [("on_loop", "succeeded"), ("twice", "retried"), ("twice", "failed")]
    assert {line["level"] for line in lines if line["event"] == ended} == {"debug"}


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31mred", "\x9b2J"])
def test_a_line_of_a_handler_stays_one_printable_line(terminal: Terminal, text: str) -> None:
    (terminal.folder / "talkers.py").write_text(TALKERS)
    worker = terminal.start("worker", "talkers", log_format="pretty", log_level="info")
    terminal.ended(terminal.submit("on_loop", text))
    said = stop(worker).err
    assert said.count(text.encode("unicode_escape").decode()) == 4
    assert text not in said


def test_a_program_with_a_logging_of_its_own_can_name_the_attempt() -> None:
    bind_attempt({"task_id": "t1", "attempt": 2})
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    handler.addFilter(AttemptFilter())
    handler.setFormatter(logging.Formatter("%(task_id)s/%(attempt)s %(message)s"))
    logger = logging.Logger("own")
    logger.addHandler(handler)
    logger.warning("hello")
    own = structlog.wrap_logger(
        structlog.PrintLogger(told), [add_attempt, structlog.processors.JSONRenderer()]
    )
    own.info("hello", attempt="theirs")
    bind_attempt({})
    logger.warning("outside")
    first, second, third = told.getvalue().splitlines()
    assert first == "t1/2 hello"
    assert json.loads(second) == {"event": "hello", "attempt": "theirs", "task_id": "t1"}
    assert third == "/ outside"
