import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dtq_core.errors import InputError, InvalidNameError, InvalidOptionError
from dtq_core.record import Options
from dtq_tasks import (
    Registry,
    Task,
    TaskDecorator,
    TaskWithOptions,
    default_registry,
    exponential,
    task,
)
from dtq_tasks.options import Declaration, Overrides


def declare(function: Callable[..., Any], **declaration: Any) -> Task[..., Any]:
    return TaskDecorator(Registry(), **declaration)(function)


def handler(user_id: int) -> str:
    """Greets."""
    return f"user {user_id}"


async def async_handler(user_id: int) -> str:
    return f"user {user_id}"


def test_a_task_is_declared_bare_or_with_keywords() -> None:
    registry = Registry()
    decorate = TaskDecorator(registry)
    bare = decorate(handler)
    named = decorate(name="greet", queue="mail")(handler)
    assert (bare.name, bare.defaults.queue) == ("handler", "default")
    assert (named.name, named.defaults.queue) == ("greet", "mail")
    assert registry.names() == ["greet", "handler"]


def test_the_decorator_of_the_package_fills_the_default_registry() -> None:
    made = task(name="test_declaration.greet")(handler)
    assert default_registry.get("test_declaration.greet") is made


def test_a_decorator_can_be_kept_and_given_more() -> None:
    mail = TaskDecorator(Registry())(queue="mail", max_attempts=7)
    urgent = mail(name="urgent", band="high", queue="post")(handler)
    assert urgent.defaults == Options(queue="post", band="high", max_attempts=7)
    assert mail(handler).defaults == Options(queue="mail", max_attempts=7)


def test_a_task_is_still_the_function() -> None:
    made = declare(handler)
    assert made(5) == made.function(5) == "user 5"
    assert (made.__name__, made.__doc__) == ("handler", "Greets.")  # type: ignore[attr-defined]
    assert inspect.signature(made) == inspect.signature(handler)


async def test_an_async_task_is_still_the_function() -> None:
    assert await declare(async_handler)(5) == "user 5"


def test_what_the_function_carries_does_not_touch_the_task() -> None:
    def marked() -> None: ...

    marked.name = "other"  # type: ignore[attr-defined]
    assert declare(marked).name == "marked"


def test_time_limits_stay_with_the_handler_not_with_its_submissions() -> None:
    made = declare(handler, timeout=30, result_ttl=60, ttl=5, dead_letter=False)
    assert (made.timeout, made.result_ttl) == (30, 60)
    assert made.defaults == Options(ttl=5, dead_letter=False)


def test_options_are_the_defaults_and_what_is_asked_for() -> None:
    made = declare(handler, queue="mail")
    chosen = made.options(delay=60, band="high", idempotency_key="u42", ttl=3600, timeout=5)
    assert isinstance(chosen, TaskWithOptions)
    assert chosen.task is made
    assert chosen.options == Options(
        queue="mail", delay=60, band="high", idempotency_key="u42", ttl=3600, timeout=5
    )
    assert made.options().options == made.defaults


def test_every_option_of_a_submission_can_be_asked_for() -> None:
    assert set(Overrides.__annotations__) == set(Options.__struct_fields__)


def test_every_keyword_of_a_task_can_be_declared() -> None:
    keywords = set(inspect.signature(Task.__init__).parameters) - {"self", "function", "defaults"}
    assert keywords <= set(Declaration.__annotations__) <= keywords | set(Options.__struct_fields__)


@pytest.mark.parametrize(
    "overrides",
    [
        {"queue": "a b"},
        {"band": "urgent"},
        {"delay": -1},
        {"max_attempts": 0},
        {"timeout": 0},
        {"ttl": float("nan")},
        {"dead_letter": 1},
        {"idempotency_key": ""},
    ],
)
def test_options_out_of_bounds_are_refused(overrides: Any) -> None:
    with pytest.raises(InputError):
        declare(handler).options(**overrides)
    if overrides.keys() <= Declaration.__annotations__.keys():
        with pytest.raises(InputError):
            declare(handler, **overrides)


def test_unknown_keywords_are_refused_and_the_known_ones_named() -> None:
    with pytest.raises(InvalidOptionError, match="task handler has no option 'prio': use band, "):
        declare(handler).options(prio=1)  # type: ignore[call-arg]
    with pytest.raises(InvalidOptionError, match="@task has no option 'delay': use band, "):
        declare(handler, delay=1)


@pytest.mark.parametrize("bad", [5, "ValueError", ValueError("x"), (ValueError, 5), [ValueError]])
def test_rules_that_name_no_exception_class_are_refused(bad: Any) -> None:
    for name in ("retry_on", "give_up_on"):
        with pytest.raises(InvalidOptionError, match=name):
            declare(handler, **{name: bad})


def test_where_a_handler_runs() -> None:
    assert declare(handler).runs_in == "thread"
    assert declare(handler, runs="loop").runs_in == "loop"
    assert declare(async_handler).runs_in == "loop"
    with pytest.raises(InvalidOptionError, match="async_handler is async"):
        declare(async_handler, runs="thread")
    for runs in ("process", "", 5):
        with pytest.raises(InvalidOptionError, match="is not offered: use 'loop' or 'thread'"):
            declare(handler, runs=runs)


def test_the_default_policy_is_exponential_up_to_five_minutes() -> None:
    longest = exponential(base=1, cap=300, jitter=False)
    for attempt in (1, 5, 100):
        delay = declare(handler).retry_delay(attempt)
        assert longest(attempt) / 2 <= delay <= longest(attempt)


def test_a_function_without_a_usable_name_has_to_be_given_one() -> None:
    def größe() -> None: ...

    for function in (lambda: None, größe):
        with pytest.raises(InvalidNameError, match=r"@task\(name="):
            declare(function)
        assert declare(function, name="size").name == "size"
    with pytest.raises(InvalidNameError, match="task name 'a b' is not allowed"):
        declare(handler, name="a b")


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    "function",
    [generator, async_generator, print, str, functools.partial(handler, 1), declare(handler), 5],
)
def test_what_is_no_plain_function_is_refused(function: Any) -> None:
    with pytest.raises(InvalidOptionError):
        declare(function)


def test_a_wrapped_function_keeps_its_signature() -> None:
    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) * 2

        return wrapper

    made = declare(twice(handler))
    assert made.name == "handler"
    with pytest.raises(InputError, match="user_id"):
        made.encode(("x",), {})


class Opaque:
    pass


@dataclass
class Holder:
    inner: list[Opaque]


@dataclass
class Tree:
    children: "list[Tree]"


@pytest.mark.parametrize(
    "annotation",
    [Opaque, list[Opaque], Holder, dict[Opaque, int], object, complex, int | Opaque, 5, Callable],
)
def test_a_type_without_a_json_form_is_refused_when_declared(annotation: Any) -> None:
    def made(value: Any) -> None: ...

    made.__annotations__["value"] = annotation
    with pytest.raises(InvalidOptionError, match="the type of parameter 'value' of made"):
        declare(made)


def test_a_name_that_does_not_exist_is_refused_when_declared() -> None:
    def made(value: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidOptionError, match="'Nowhere' of parameter 'value' of made cannot"):
        declare(made)


def test_a_type_may_contain_itself() -> None:
    def made(tree: Tree) -> Tree:
        return tree

    sent = Tree([Tree([])])
    ((got,), _) = declare(made).decode(declare(made).encode((sent,), {}))
    assert got == sent


def test_a_result_becomes_what_the_handler_is_annotated_to_return() -> None:
    def tree() -> Tree: ...  # type: ignore[empty-body]
    def nothing_said(): ...  # type: ignore[no-untyped-def]
    def nowhere() -> "Nowhere": ...  # type: ignore[name-defined]  # noqa: F821
    def opaque() -> Opaque: ...  # type: ignore[empty-body]

    text = b'{"children":[]}'
    assert declare(tree).decode_result(text) == Tree([])
    assert declare(tree).decode_result(b"5") == 5
    for function in (nothing_said, nowhere, opaque):
        assert declare(function).decode_result(text) == {"children": []}
    with pytest.raises(InputError, match="the result of tree is not valid JSON"):
        declare(tree).decode_result(b"{")
