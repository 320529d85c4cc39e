"""Tests of the handler: no Redis, no worker. Run in this folder: python -m pytest"""

from tasks import fetch_rate

from dtq_tasks.testing import TaskTester


def test_a_lost_connection_is_tried_again() -> None:
    run = TaskTester(fetch_rate, attempt=1).run("EUR")
    assert run.error is not None
    assert run.error.type == "ConnectionError"
    assert run.retry_in is not None
    assert 0.1 <= run.retry_in <= 0.2


def test_the_third_attempt_succeeds() -> None:
    assert TaskTester(fetch_rate, attempt=3).run("EUR").result == 1.08


def test_an_unknown_currency_is_given_up() -> None:
    run = TaskTester(fetch_rate).run("ZZZ")
    assert run.retry_in is None
