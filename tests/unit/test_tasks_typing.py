"""What type checkers see; checked by mypy, hence nothing here but that it runs."""

from collections.abc import Callable
from typing import Any, assert_type

from dtq_tasks import Context, Registry, Task, TaskDecorator
from dtq_tasks.testing import TaskRun, TaskTester

task = TaskDecorator(Registry())


@task
async def with_context(ctx: Context, user_id: int) -> str:
    return f"{ctx.name} {user_id}"


@task(queue="mail", retry=[1, 2])
def plain(user_id: int, *, loud: bool = False) -> list[str]:
    return ["!" * loud, str(user_id)]


@task(name="nothing")
async def nothing() -> None: ...


def submit(task: Callable[..., Any], *args: Any) -> None: ...


def test_a_task_has_the_parameters_and_the_result_of_its_handler() -> None:
    assert_type(TaskTester(with_context).run(1), TaskRun[str])
    assert_type(TaskTester(plain).run(1, loud=True), TaskRun[list[str]])
    assert_type(TaskTester(nothing).run(), TaskRun[None])
    assert_type(with_context.decode_result(b'"x"'), str)


def test_any_task_is_a_task_of_any_parameters() -> None:
    tasks: list[Task[..., Any]] = [with_context, plain, nothing]
    assert len(tasks) == 3
