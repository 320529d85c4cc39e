"""Tasks by name: how a worker finds the handler of what it claimed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtq_core.errors import InvalidNameError
from dtq_tasks.definition import Task


class Registry:
    """A set of tasks, each with a name of its own."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[..., Any]] = {}

    def add(self, task: Task[..., Any]) -> None:
        """Take in a task; one made of the same function, read again, replaces it.

        Raises:
            InvalidNameError: if another function has that name.
        """
        known = self._tasks.get(task.name)
        if known and not _same_function(known.function, task.function):
            raise InvalidNameError(
                f"two functions want to be task {task.name!r}: {_origin(known.function)} and "
                f"{_origin(task.function)}; give one another name: @task(name=…)"
            )
        self._tasks[task.name] = task

    def get(self, name: str) -> Task[..., Any] | None:
        """Return the task of a name, None where there is none."""
        return self._tasks.get(name)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._tasks)


def _same_function(one: Callable[..., Any], other: Callable[..., Any]) -> bool:
    """Tell whether two functions come from the same place.

    A module can be there twice (run as a script and imported), a notebook cell has a new file each
    time: one of module and file has to agree.
    """
    return one.__qualname__ == other.__qualname__ and (
        one.__module__ == other.__module__ or one.__code__.co_filename == other.__code__.co_filename
    )


def _origin(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


default_registry = Registry()
"""Where ``@task`` puts what it makes, and where workers look."""
