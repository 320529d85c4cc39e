"""``@task``: makes a function a task."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from dtq_tasks.context import Context
from dtq_tasks.definition import Task
from dtq_tasks.options import Declaration, check_keywords
from dtq_tasks.registry import Registry, default_registry

P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator:
    """Makes functions tasks and puts them into one registry.

    Used as ``@task`` or with keywords, ``@task(queue="mail", timeout=30)``. With keywords alone it
    returns another decorator, which can be kept for several tasks and given more keywords.

    A parameter annotated :class:`Context` is filled in by the worker, wherever it stands. Type
    checkers can leave it out of what submitting takes only where it is the first one.
    """

    def __init__(self, registry: Registry, **declaration: Unpack[Declaration]) -> None:
        check_keywords(declaration, Declaration, "@task")
        self._registry = registry
        self._declaration = declaration

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, /, **declaration: Unpack[Declaration]) -> TaskDecorator: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **declaration: Any) -> Any:
        """Make a function a task, or return a decorator with further keywords.

        Args:
            function: the handler.
            **declaration: the keywords of :class:`dtq_tasks.Task`.

        Returns:
            The task; without a function, a decorator.

        Raises:
            InvalidNameError: for a bad name, or one that another function has.
            InvalidOptionError: for an option out of bounds, or a handler that cannot be a task.
        """
        if declaration:
            merged: Declaration = {**self._declaration, **declaration}  # type: ignore[typeddict-item]
            more = TaskDecorator(self._registry, **merged)
            return more if function is None else more(function)
        if function is None:
            return self
        made: Task[..., Any] = Task(function, **self._declaration)
        self._registry.add(made)
        return made


task = TaskDecorator(default_registry)
"""The decorator for handlers; see :class:`TaskDecorator`."""
