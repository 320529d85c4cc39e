"""What is refused: the kind of error, one line that says what to do, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from client.tasks import add, anything, plain
from dtq_core.errors import (
    EncodingError,
    InputError,
    InvalidArgumentsError,
    InvalidNameError,
    InvalidOptionError,
    SettingsError,
    TaskNotFoundError,
    TooLargeError,
)
from support.hand import Hand

ID = "0" * 32
NAN, INFINITY = float("nan"), float("inf")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


class Opaque:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


BY_HANDLER: list[tuple[str, Callable[[Any], Any], type[InputError], str]] = [
    ("too few", lambda c: c.submit(add), InvalidArgumentsError, "add: .*'left'"),
    ("too many", lambda c: c.submit(add, 1, 2, 3), InvalidArgumentsError, "add: too many"),
    ("unknown", lambda c: c.submit(add, 1, middle=2), InvalidArgumentsError, "'middle'"),
    ("wrong type", lambda c: c.submit(add, 1, "2"), InvalidArgumentsError, "'right'"),
    ("NaN", lambda c: c.submit(anything, NAN), InvalidArgumentsError, "'value'.*NaN"),
    ("infinity", lambda c: c.submit(anything, [INFINITY]), InvalidArgumentsError, "'value'.*infin"),
    ("too deep", lambda c: c.submit(anything, nested(200)), InvalidArgumentsError, "'value'.*100"),
    ("deeper", lambda c: c.submit(anything, nested(20_000)), InvalidArgumentsError, "'value'.*100"),
    ("no JSON", lambda c: c.submit(anything, Opaque()), InvalidArgumentsError, "'value'.*Opaque"),
    ("surrogate", lambda c: c.submit(anything, "\ud800"), InvalidArgumentsError, "'value'.*surrog"),
    ("a set", lambda c: c.submit(anything, {1}), InvalidArgumentsError, "'value'.*annotate"),
    ("too large", lambda c: c.submit(anything, "x" * 1_048_576), TooLargeError, "1,048,576.*refer"),
    ("a function", lambda c: c.submit(plain, 1), InvalidArgumentsError, "'plain'.*@task"),
    ("a name", lambda c: c.submit("add", 1), InvalidArgumentsError, "'add'.*@task"),
    ("None", lambda c: c.submit(None), InvalidArgumentsError, "None.*@task"),
    ("opaque", lambda c: c.submit(Opaque()), InvalidArgumentsError, "Opaque.*@task"),
    ("long text", lambda c: c.submit("x\n" * 9_999), InvalidArgumentsError, "@task"),
    ("many: none", lambda c: c.submit_many(plain, [(1,)]), InvalidArgumentsError, "@task"),
    ("many: number", lambda c: c.submit_many(add, 7), InvalidArgumentsError, "submit_many"),
    ("many: mapping", lambda c: c.submit_many(add, {"left": 1}), InvalidArgumentsError, "tuple"),
    ("many: text", lambda c: c.submit_many(add, "abc"), InvalidArgumentsError, "tuple"),
]

OPTIONS: list[tuple[dict[str, Any], type[InputError], str]] = [
    ({"delay": -1}, InvalidOptionError, "delay -1 .*0 to"),
    ({"delay": NAN}, InvalidOptionError, "delay nan .*0 to"),
    ({"delay": INFINITY}, InvalidOptionError, "delay inf .*0 to"),
    ({"delay": 1e300}, InvalidOptionError, "delay 1e.300 .*0 to"),
    ({"delay": "5"}, InvalidOptionError, "delay '5' is not a number"),
    ({"delay": True}, InvalidOptionError, "delay True is not a number"),
    ({"delay": None}, InvalidOptionError, "delay None is not a number"),
    ({"ttl": -0.5}, InvalidOptionError, "ttl -0.5 .*0 to"),
    ({"ttl": NAN}, InvalidOptionError, "ttl nan"),
    ({"timeout": 0}, InvalidOptionError, "timeout 0"),
    ({"timeout": INFINITY}, InvalidOptionError, "timeout inf"),
    ({"result_ttl": 0}, InvalidOptionError, "result_ttl 0"),
    ({"result_ttl": -1}, InvalidOptionError, "result_ttl -1"),
    ({"max_attempts": 0}, InvalidOptionError, "max_attempts 0 .*from 1"),
    ({"max_attempts": 1.5}, InvalidOptionError, "max_attempts 1.5 .*whole number"),
    ({"max_attempts": True}, InvalidOptionError, "max_attempts True"),
    ({"dead_letter": "no"}, InvalidOptionError, "dead_letter 'no'"),
    ({"queue": ""}, InvalidNameError, "queue name ''.*A-Z"),
    ({"queue": "a b"}, InvalidNameError, "queue name 'a b'"),
    ({"queue": "a:b"}, InvalidNameError, "queue name 'a:b'"),
    ({"queue": "{a}"}, InvalidNameError, "queue name '{a}'"),
    ({"queue": "é"}, InvalidNameError, "queue name"),
    ({"queue": "x" * 101}, InvalidNameError, "queue name .*1 to 100"),
    ({"queue": "a\n"}, InvalidNameError, "queue name"),
    ({"queue": 7}, InvalidNameError, "queue name 7"),
    ({"queue": None}, InvalidNameError, "queue name None"),
    ({"band": "urgent"}, InvalidOptionError, "band 'urgent' .*critical, high, normal, low"),
    ({"band": 1}, InvalidOptionError, "band 1 "),
    ({"band": []}, InvalidOptionError, r"band \[\] "),
    ({"idempotency_key": ""}, InvalidNameError, "idempotency key ''.*1 to 255"),
    ({"idempotency_key": "a b"}, InvalidNameError, "idempotency key 'a b'"),
    ({"idempotency_key": "x" * 256}, InvalidNameError, "idempotency key .*1 to 255"),
    ({"idempotency_key": "é"}, InvalidNameError, "idempotency key"),
    ({"idempotency_key": 7}, InvalidNameError, "idempotency key 7"),
    ({"priority": 1}, InvalidOptionError, "no option 'priority': use .*band"),
]

BY_NAME: list[tuple[tuple[Any, ...], type[InputError], str]] = [
    (("",), InvalidNameError, "task name ''.*A-Z"),
    (("os system",), InvalidNameError, "task name 'os system'"),
    ((None,), InvalidNameError, "task name None"),
    ((7,), InvalidNameError, "task name 7"),
    (("t", (1, NAN)), EncodingError, "argument 1 holds NaN"),
    (("t", (), {"x": {1: NAN}}), EncodingError, "argument 'x' holds NaN"),
    (("t", (nested(200),)), EncodingError, "argument 0 is nested more than 100"),
    (("t", (Opaque(),)), EncodingError, "argument 0 .*Opaque"),
    (("t", "abc"), InvalidArgumentsError, "args .*tuple or list"),
    (("t", 7), InvalidArgumentsError, "args .*tuple or list"),
    (("t", {"x": 1}), InvalidArgumentsError, "args .*tuple or list"),
    (("t", (), [1]), InvalidArgumentsError, "kwargs .*mapping"),
    (("t", (), {1: 2}), InvalidArgumentsError, "kwargs 1 is no name"),
    (("t", ("x" * 1_048_576,)), TooLargeError, "the payload of t .*1,048,576"),
]

IDS = ["", "x", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "0" * 32 + "\n", 7, None, b"0" * 32]


def refuse(call: Callable[[], Any], kind: type[InputError], pattern: str, hand: Hand) -> None:
    """Check the kind and the message of an error, and that nothing was written."""
    with pytest.raises(InputError, match=pattern) as caught:
        call()
    assert type(caught.value) is kind
    assert str(caught.value).isprintable(), "it is one line"
    assert len(str(caught.value)) < 300
    assert hand.keys() == set()


@pytest.mark.parametrize(
    ("call", "kind", "pattern"), [row[1:] for row in BY_HANDLER], ids=[row[0] for row in BY_HANDLER]
)
def test_arguments_that_do_not_fit(
    client: Any, hand: Hand, call: Any, kind: type[InputError], pattern: str
) -> None:
    refuse(lambda: call(client), kind, pattern, hand)


@pytest.mark.parametrize(("options", "kind", "pattern"), OPTIONS, ids=repr)
def test_options_out_of_bounds(
    client: Any, hand: Hand, options: dict[str, Any], kind: type[InputError], pattern: str
) -> None:
    refuse(lambda: client.submit(add.options(**options), 1), kind, pattern, hand)
    refuse(lambda: client.submit_by_name("add", (1,), **options), kind, pattern, hand)


@pytest.mark.parametrize(("arguments", "kind", "pattern"), BY_NAME, ids=lambda _: "")
def test_submissions_by_name_that_do_not_fit(
    client: Any, hand: Hand, arguments: Any, kind: type[InputError], pattern: str
) -> None:
    refuse(lambda: client.submit_by_name(*arguments), kind, pattern, hand)


@pytest.mark.parametrize("task_id", IDS, ids=repr)
@pytest.mark.parametrize("method", ["get", "result", "cancel", "attempts", "handle"])
def test_what_is_no_task_id(client: Any, hand: Hand, method: str, task_id: Any) -> None:
    with pytest.raises(InvalidNameError, match="is not a task id: 32 hexadecimal digits"):
        getattr(client, method)(task_id)


@pytest.mark.parametrize("method", ["get", "result", "cancel", "attempts"])
def test_no_server_is_asked_about_what_is_no_task_id(make_client: Any, method: str) -> None:
    client = make_client("redis://127.0.0.1:1", retry_timeout=60)
    with pytest.raises(InvalidNameError):
        getattr(client, method)("x")


def test_an_id_of_a_partition_that_is_not_here(client: Any) -> None:
    with pytest.raises(TaskNotFoundError, match="no task"):
        client.handle("0" * 31 + "1")


@pytest.mark.parametrize("timeout", [-1, NAN, INFINITY, "5", True])
def test_a_wait_that_is_no_time(client: Any, timeout: Any) -> None:
    with pytest.raises(InvalidOptionError, match="timeout"):
        client.result(ID, timeout=timeout)


@pytest.mark.parametrize("reason", [7, b"x", ["x"]])
def test_a_reason_that_is_no_text(client: Any, hand: Hand, reason: Any) -> None:
    handle = client.submit(add, 1)
    with pytest.raises(InvalidOptionError, match=r"reason .* is not text"):
        client.cancel(handle.id, reason)
    assert not handle.status().terminal


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ({"prefixx": "x"}, "no setting 'prefixx'"),
        ({"prefix": "a b"}, "PREFIX"),
        ({"partitions": 0}, "PARTITIONS"),
        ({"retry_timeout": -1}, "RETRY_TIMEOUT"),
        ({"connect_timeout": "soon"}, "CONNECT_TIMEOUT"),
    ],
)
def test_settings_that_are_wrong(face: Any, given: dict[str, Any], pattern: str) -> None:
    with pytest.raises(SettingsError, match=pattern):
        face("redis://127.0.0.1:1", **given)


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "http://localhost", "redis://:secret@h:port"]
)
def test_an_url_that_is_none_is_refused_without_its_password(face: Any, url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        face(url)
    assert "DTQ_REDIS_URL" in str(caught.value)
    assert "secret" not in str(caught.value)
