import types
from typing import Any

import pytest

from dtq_core.errors import InvalidNameError
from dtq_tasks import Registry, Task

SOURCE = "def handler() -> int:\n    return {}\n"


def load(module: str, path: str, value: int) -> Any:
    scope = types.ModuleType(module)
    exec(compile(SOURCE.format(value), path, "exec"), scope.__dict__)
    return scope.handler


def test_tasks_are_found_by_name() -> None:
    registry = Registry()
    made: Task[..., Any] = Task(load("app", "app.py", 1))
    registry.add(made)
    assert registry.get("handler") is made
    assert registry.get("other") is None
    assert registry.names() == ["handler"]


def test_another_function_of_the_same_name_is_refused() -> None:
    registry = Registry()
    made: Task[..., Any] = Task(load("app.mail", "mail.py", 1))
    registry.add(made)
    with pytest.raises(InvalidNameError, match=r"app\.mail\.handler and app\.post\.handler"):
        registry.add(Task(load("app.post", "post.py", 2)))
    assert registry.get("handler") is made


@pytest.mark.parametrize(
    ("module", "path"),
    [("app", "app.py"), ("__main__", "app.py"), ("app", "cell-2")],
    ids=["reloaded", "run as a script and imported", "another notebook cell"],
)
def test_the_same_function_read_again_replaces_the_old_one(module: str, path: str) -> None:
    registry = Registry()
    registry.add(Task(load("app", "app.py", 1)))
    again: Task[..., Any] = Task(load(module, path, 2))
    registry.add(again)
    assert registry.get("handler") is again
