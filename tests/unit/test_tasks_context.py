from __future__ import annotations

import math
import threading
from typing import Any

import pytest

from dtq_core.errors import EncodingError, TooLargeError
from dtq_tasks.context import MAX_PROGRESS_BYTES
from dtq_tasks.testing import make_context


def test_a_context_says_what_it_was_made_with() -> None:
    context = make_context(task_id="a" * 32, name="f", queue="mail", attempt=2, max_attempts=5)
    assert (context.task_id, context.id) == ("a" * 32, "a" * 32)
    assert (context.name, context.queue) == ("f", "mail")
    assert (context.attempt, context.max_attempts) == (2, 5)
    assert context.deadline is None


def test_the_newest_progress_is_taken_once() -> None:
    context = make_context()
    assert context.take_progress() is None
    context.progress(0.25)
    context.progress({"rows": 7})
    assert context.take_progress() == b'{"rows":7}'
    assert context.take_progress() is None


def test_a_note_goes_along() -> None:
    context = make_context()
    context.progress(0.5, "half-way")
    assert context.take_progress() == b'{"value":0.5,"note":"half-way"}'


@pytest.mark.parametrize("value", [math.nan, object(), "\ud800"])
def test_progress_without_a_json_form_is_refused(value: Any) -> None:
    context = make_context()
    context.progress(1)
    with pytest.raises(EncodingError, match="progress"):
        context.progress(value)
    assert context.take_progress() == b"1"


def test_progress_is_bounded() -> None:
    context = make_context()
    context.progress("x" * (MAX_PROGRESS_BYTES - 2))
    with pytest.raises(TooLargeError, match="progress is 4,097 bytes"):
        context.progress("x" * (MAX_PROGRESS_BYTES - 1))


def test_cancelling_is_seen_from_another_thread() -> None:
    context = make_context()
    seen = threading.Event()

    def handler() -> None:
        while not context.cancelled:
            pass
        seen.set()

    thread = threading.Thread(target=handler, daemon=True)
    thread.start()
    assert not context.cancelled
    context.request_cancel()
    assert seen.wait(5)
