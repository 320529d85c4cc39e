"""Any signature, called in any way, with a context anywhere: as Python itself would call it."""

from typing import Annotated, Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq_core.errors import InvalidArgumentsError, InvalidOptionError
from dtq_tasks import Context, Task
from dtq_tasks.testing import make_context

SIGNATURES = [
    "",
    "a",
    "a, b=2",
    "a=1, b=2",
    "a, /, b=2",
    "a=1, b=2, /, c=3",
    "*rest",
    "a, *rest",
    "a=1, b=2, *rest",
    "*, k",
    "*, k=1",
    "a, *, k, j=2",
    "a=1, *, k=2",
    "**others",
    "a, /, **others",
    "a, b=2, *rest, k=3, **others",
    "self, args, kwargs, name=1, timeout=2, queue=3, delay=4, task_id=5, task=6",
    "a, ctx=1, *, context=2",
]
arguments = st.lists(st.integers(), max_size=4)
names = ["a", "b", "c", "k", "j", "z", "self", "args", "kwargs", "ctx", "timeout", "rest", "others"]
keywords = st.dictionaries(st.sampled_from(names), st.integers(), max_size=4)


def define(signature: str) -> Any:
    scope: dict[str, Any] = {"Context": Context}
    exec(f"def handler({signature}): return locals()", scope)
    return scope["handler"]


def with_context(signature: str) -> list[str]:
    """Every legal place for a context in a signature."""
    parts = [part for part in signature.split(", ") if part]
    found = []
    for index in range(len(parts) + 1):
        for injected in ("injected: Context", "injected: Context = None"):
            candidate = ", ".join([*parts[:index], injected, *parts[index:]])
            try:
                define(candidate)
            except SyntaxError:
                continue
            found.append(candidate)
    return found


@pytest.mark.parametrize("signature", SIGNATURES)
@given(arguments, keywords)
def test_a_handler_gets_what_python_would_give_it(
    signature: str, args: list[int], kwargs: dict[str, int]
) -> None:
    plain = define(signature)
    functions = [plain, *map(define, VARIANTS[signature])]
    tasks: list[Task[..., Any]] = [Task(function) for function in functions]
    try:
        expected = plain(*args, **kwargs)
    except TypeError:
        for task in tasks:
            with pytest.raises(InvalidArgumentsError, match=r"^handler: "):
                task.encode(args, kwargs)
        return
    context = make_context()
    for task in tasks:
        got_args, got_kwargs = task.with_context(task.decode(task.encode(args, kwargs)), context)
        got = task.function(*got_args, **got_kwargs)
        if task.context_parameter:
            assert got.pop("injected") is context
        assert got == expected


VARIANTS = {signature: with_context(signature) for signature in SIGNATURES}


def test_every_signature_has_a_place_for_a_context() -> None:
    assert all(VARIANTS.values())


def test_a_context_cannot_be_sent() -> None:
    for signature in ("a, ctx: Context", "a, *, ctx: Context", "a, ctx: Context, **others"):
        task: Task[..., Any] = Task(define(signature))
        assert task.context_parameter == "ctx"
        with pytest.raises(InvalidArgumentsError, match="'ctx' is filled in by the worker"):
            task.encode((1,), {"ctx": 2})
        with pytest.raises(InvalidArgumentsError, match="'ctx' is filled in by the worker"):
            task.decode(b'[[1],{"ctx":2}]')


def test_the_name_of_a_positional_only_context_is_free() -> None:
    task: Task[..., Any] = Task(define("ctx: Context, /, **others"))
    args, kwargs = task.with_context(task.decode(task.encode((), {"ctx": 2})), make_context())
    assert len(args) == 1
    assert kwargs == {"ctx": 2}


def test_a_context_is_found_by_its_annotation_only() -> None:
    def unannotated(ctx, context: int): ...  # type: ignore[no-untyped-def]
    def optional(job: Context | None = None) -> None: ...
    def old_optional(job: Optional[Context] = None) -> None: ...  # noqa: UP045
    def annotated(job: Annotated[Context, "whatever"]) -> None: ...
    def as_text(job: "Context") -> None: ...

    assert Task(unannotated).context_parameter is None
    for function in (optional, old_optional, annotated, as_text):
        assert Task(function).context_parameter == "job"


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("a: Context, b: Context", "more than one"),
        ("*many: Context", "many of handler takes many"),
        ("**many: Context", "many of handler takes many"),
        ("a: list[Context]", "Context has no JSON form"),
    ],
)
def test_a_context_that_cannot_be_filled_in_is_refused(signature: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        Task(define(signature))
