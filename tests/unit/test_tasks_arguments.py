from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq_core.errors import InvalidArgumentsError
from dtq_tasks import Task

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Point3(Point):
    z: int = 0


class Pair(NamedTuple):
    left: int
    right: str


class Row(TypedDict):
    id: int


class Node(msgspec.Struct):
    value: int
    next: Node | None = None


class Identity:
    """What pydantic models do, without pydantic; compares by identity."""

    def __init__(self, text: str) -> None:
        self.text = text

    def model_dump(self, **_: Any) -> Any:
        return {"text": self.text}

    @classmethod
    def model_validate(cls, value: Any) -> Identity:
        return cls(value["text"])


def untyped(value, *rest, **others):  # type: ignore[no-untyped-def]
    """Takes anything."""


def typed(user_id: int, name: str = "x", *, when: datetime | None = None) -> None:
    """Takes what it says."""


UNTYPED: Task[..., Any] = Task(untyped)
TYPED: Task[..., Any] = Task(typed)


def round_trip(annotation: Any, value: Any) -> Any:
    def handler(value: Any) -> None: ...

    handler.__annotations__["value"] = annotation
    made: Task[..., Any] = Task(handler)
    args, kwargs = made.decode(made.encode((value,), {}))
    assert kwargs == {}
    return args[0]


@given(st.lists(values, min_size=1, max_size=4), st.dictionaries(st.text(), values, max_size=3))
def test_plain_values_arrive_as_they_were_sent(args: list[Any], kwargs: dict[str, Any]) -> None:
    kwargs.pop("value", None)
    payload = UNTYPED.encode(args, kwargs)
    assert json.loads(payload) == [args, kwargs]
    assert UNTYPED.decode(payload) == (tuple(args), kwargs)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Colour, Colour.RED),
        (Point, Point(1, 2)),
        (list[Point], [Point(1)]),
        (Pair, Pair(1, "a")),
        (Row, {"id": 1}),
        (Node, Node(1, Node(2))),
        (Identity | None, None),
        (UUID, UUID(int=5)),
        (Decimal, Decimal("1.10")),
        (date, date(2030, 1, 2)),
        (datetime, datetime(2030, 1, 2, tzinfo=timezone(timedelta(hours=2)))),
        (timedelta, timedelta(days=1, microseconds=1)),
        (bytes, b"\x00\xff"),
        (set[int], {1, 2}),
        (tuple[int, ...], (1, 2)),
        (dict[int, str], {1: "a"}),
        (int | str | None, "5"),
        (Literal["a", 1], 1),
        (Annotated[int, msgspec.Meta(ge=0)], 0),
        (float, 5),
        (Any, [1, {"a": None}]),
        (Sequence[int], [1]),
    ],
)
def test_typed_values_arrive_as_they_were_sent(annotation: Any, value: Any) -> None:
    assert round_trip(annotation, value) == value


def test_a_model_arrives_as_one() -> None:
    (arrived,) = round_trip(list[Identity], [Identity("a")])
    assert isinstance(arrived, Identity)
    assert arrived.text == "a"


def test_pydantic_models_arrive_as_they_were_sent() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", count=(int, pydantic.Field(alias="theCount")))
    assert round_trip(model, model(theCount=5)) == model(theCount=5)
    with pytest.raises(InvalidArgumentsError, match=r"(?s)argument 'value': .*theCount"):
        round_trip(model, {})


def test_a_tuple_may_arrive_as_the_list_that_json_makes_of_it() -> None:
    assert round_trip(Any, ((1, 2), {"a": (3,)})) == [[1, 2], {"a": [3]}]
    assert round_trip(list[int], (1, 2)) == [1, 2]
    assert round_trip(tuple[int, str], [1, "a"]) == (1, "a")


def test_plain_json_becomes_what_the_parameter_says() -> None:
    assert round_trip(Point, {"x": 1}) == Point(1)
    assert round_trip(list[date], ["2030-01-02"]) == [date(2030, 1, 2)]


@pytest.mark.parametrize(
    "value",
    [
        {1: "a"},
        [{"deep": {1: "a"}}],
        datetime.now(UTC),
        {1, 2},
        b"x",
        Decimal(1),
        UUID(int=1),
        Colour.RED,
        Point(1),
        Pair(1, "a"),
        Identity("a"),
        msgspec.Raw(b"[1]"),
    ],
)
def test_what_would_silently_arrive_as_something_else_is_refused(value: Any) -> None:
    with pytest.raises(
        InvalidArgumentsError, match=r"argument 'value' would arrive as .* annotate"
    ):
        UNTYPED.encode((value,), {})


def test_a_subclass_that_would_lose_its_fields_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match=r"arrive as Point\(.*not as Point3\("):
        round_trip(Point, Point3(1, 2, 3))


def test_an_int_that_no_float_holds_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="argument 'value' would arrive as"):
        round_trip(float, 2**53 + 1)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (math.nan, "holds NaN or infinity"),
        ([1, -math.inf], "holds NaN or infinity"),
        ("\ud800", "lone surrogate"),
        (object(), "a object has no JSON form"),
    ],
)
def test_what_has_no_json_form_is_refused_by_name(bad: Any, message: str) -> None:
    for args, kwargs, name in [
        ((bad,), {}, "value"),
        ((1, bad), {}, "rest"),
        ((1,), {"key": bad}, "key"),
    ]:
        with pytest.raises(InvalidArgumentsError, match=f"untyped: argument '{name}' .*{message}"):
            UNTYPED.encode(args, kwargs)


def test_a_name_that_has_no_json_form_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="lone surrogate"):
        UNTYPED.encode((1,), {"\ud800": 1})


def test_the_deepest_payload_allowed_counts_its_own_two_levels() -> None:
    value: Any = 1
    for _ in range(98):
        value = [value]
    UNTYPED.encode((value,), {})
    with pytest.raises(InvalidArgumentsError, match="argument 'value' is nested more than 100"):
        UNTYPED.encode(([value],), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("1",), {}, "argument 'user_id' takes int, not str"),
        ((True,), {}, "argument 'user_id' takes int, not bool"),
        ((1, 2), {}, "argument 'name' takes str, not int"),
        ((1,), {"when": "soon"}, "argument 'when': Invalid RFC3339"),
        ((), {}, "missing a required argument: 'user_id'"),
        ((), {"name": "x"}, "missing a required argument: 'user_id'"),
        ((1, "x", 3), {}, "too many positional arguments"),
        ((1,), {"user_id": 1}, "multiple values for argument 'user_id'"),
        ((1,), {"nobody": 1}, "unexpected keyword argument 'nobody'"),
    ],
)
def test_sender_and_worker_refuse_the_same_arguments_by_name(
    args: Any, kwargs: Any, message: str
) -> None:
    with pytest.raises(InvalidArgumentsError, match=f"typed: .*{message}"):
        TYPED.encode(args, kwargs)
    with pytest.raises(InvalidArgumentsError, match=f"typed: .*{message}"):
        TYPED.decode(json.dumps([args, kwargs]).encode())


def test_the_same_call_is_the_same_payload_however_it_is_written() -> None:
    assert TYPED.encode((1, "x"), {}) == b'[[1,"x"],{}]'
    assert TYPED.encode((1,), {"name": "x"}) == b'[[1,"x"],{}]'
    assert TYPED.encode((), {"name": "x", "user_id": 1}) == b'[[1,"x"],{}]'


def test_a_default_is_the_workers_to_fill_in() -> None:
    assert TYPED.encode((1,), {}) == b"[[1],{}]"
    assert TYPED.decode(b"[[1],{}]") == ((1,), {})


@pytest.mark.parametrize(
    "payload",
    [b"", b"{}", b"null", b"[]", b"[[1]]", b"[[1],{},{}]", b"[1,{}]", b"[[1],[]]", b"[" * 10**5],
)
def test_a_payload_of_another_form_is_refused(payload: bytes) -> None:
    for task in (TYPED, UNTYPED):
        with pytest.raises(InvalidArgumentsError, match=r"is not \[args, kwargs\]"):
            task.decode(payload)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
def test_decoding_raises_nothing_else(payload: bytes) -> None:
    for task in (TYPED, UNTYPED):
        try:
            args, kwargs = task.decode(payload)
        except InvalidArgumentsError:
            continue
        assert isinstance(args, tuple)
        assert isinstance(kwargs, dict)


def test_a_validation_that_breaks_is_named() -> None:
    with pytest.raises(InvalidArgumentsError, match="argument 'value': KeyError: 'text'"):
        round_trip(Identity, {"other": 1})


def test_variadic_arguments_are_typed_one_by_one() -> None:
    def handler(first: str, *numbers: int, **names: str) -> None: ...

    task: Task[..., Any] = Task(handler)
    payload = task.encode(("a", 1, 2), {"x": "y"})
    assert task.decode(payload) == (("a", 1, 2), {"x": "y"})
    with pytest.raises(InvalidArgumentsError, match="argument 'numbers' takes int"):
        task.encode(("a", 1, "2"), {})
    with pytest.raises(InvalidArgumentsError, match="argument 'x' takes str"):
        task.encode(("a",), {"x": 1})


@dataclass
class Address:
    city: str
    number: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"city": "Rome"}], "argument 'to' lacks the field 'number', at [0]"),
        ([{"city": 1, "number": 1}], "argument 'to' takes str, not int, at [0].city"),
        (7, "argument 'to' takes array, not int"),
    ],
)
def test_a_part_that_does_not_fit_is_named_in_plain_words(value: Any, message: str) -> None:
    def handler(to: list[Address]) -> None: ...

    with pytest.raises(InvalidArgumentsError, match=re.escape(message)):
        Task(handler).encode((value,), {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"count": "many"}, "the field 'count' of Basket does not take 'many' (float_parsing)"),
        ({"count": -1}, "the field 'count' of Basket: a count is not negative"),
        ({}, "the field 'count' of Basket is missing"),
        (7, "Basket does not take 7 (model_type)"),
    ],
)
def test_what_a_pydantic_model_refuses_is_one_plain_line(value: Any, message: str) -> None:
    pydantic = pytest.importorskip("pydantic")

    def check(count: float) -> float:
        if count < 0:
            raise ValueError("a count is not negative")
        return count

    model = pydantic.create_model(
        "Basket",
        count=(float, ...),
        __validators__={"check": pydantic.field_validator("count")(check)},
    )

    def handler(basket: Any) -> None: ...

    handler.__annotations__["basket"] = model
    with pytest.raises(InvalidArgumentsError) as caught:
        Task(handler, name="buy").encode((value,), {})
    assert str(caught.value) == f"buy: argument 'basket': {message}"
