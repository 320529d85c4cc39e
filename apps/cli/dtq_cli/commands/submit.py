"""``dtq submit``: a task by name."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

import msgspec
import typer

from dtq_cli.commands.result import check_wait, wait_for_result
from dtq_cli.options import (
    Arguments,
    Common,
    MaxAttempts,
    NamedArguments,
    TaskBand,
    TaskQueue,
    Ttl,
)
from dtq_cli.output import note, print_json, print_line
from dtq_client import Client
from dtq_core import codec
from dtq_core.errors import DtqError, EncodingError, InvalidArgumentsError
from dtq_core.limits import Band, Durability
from dtq_core.record import DEFAULT_MAX_ATTEMPTS, DEFAULT_QUEUE

_LONGEST_HINT = 40


def submit(
    name: Annotated[str, typer.Argument(help="The task's name.", show_default=False)],
    common: Common,
    args: Arguments = "[]",
    kwargs: NamedArguments = "{}",
    queue: TaskQueue = DEFAULT_QUEUE,
    band: TaskBand = Band.NORMAL.value,
    delay: Annotated[
        float, typer.Option("--delay", help="How long before it may start.", metavar="SECONDS")
    ] = 0,
    ttl: Ttl = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key",
            help="A second submission under the same key is the same task.",
            metavar="KEY",
            show_default=False,
        ),
    ] = None,
    max_attempts: MaxAttempts = DEFAULT_MAX_ATTEMPTS,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", help="How long one attempt may run.", metavar="SECONDS", show_default=False
        ),
    ] = None,
    result_ttl: Annotated[
        float | None,
        typer.Option(
            "--result-ttl", help="How long its result stays.", metavar="SECONDS", show_default=False
        ),
    ] = None,
    no_dead_letter: Annotated[
        bool,
        typer.Option("--no-dead-letter", help="Let it end as FAILED, not as DEAD_LETTERED."),
    ] = False,
    durability: Annotated[
        Durability | None,
        typer.Option(
            "--durability",
            help="How far it must have got when its id is printed; else as the setting says.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait",
            help="Wait so long for its result, and print that too.",
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Submit a task.

    The handler need not be known here; so its arguments and its own defaults are not known either.
    When this prints an id, the task is accepted.

    With `--json` it prints the task, with `--wait` as it then is and with its `result`.
    """
    positional, by_name = positional_of(args), named_of(kwargs)
    wait = None if wait is None else check_wait(wait)
    with common.client() as client:
        handle = client.submit_by_name(
            name,
            positional,
            by_name,
            queue=queue,
            band=band,
            delay=delay,
            ttl=ttl,
            idempotency_key=idempotency_key,
            max_attempts=max_attempts,
            timeout=timeout,
            result_ttl=result_ttl,
            dead_letter=not no_dead_letter,
            durability=durability,
        )
        if handle.duplicate:
            note("the idempotency key was used before: this is the task that it belongs to")
        answer = _answer_json if common.json else _answer
        answer(client, handle.id, wait)


def _answer(client: Client, task_id: str, wait: float | None) -> None:
    print_line(task_id)
    if wait is not None:
        print_json(wait_for_result(client, task_id, wait))


def _answer_json(client: Client, task_id: str, wait: float | None) -> None:
    """Write the task, with its result where that was waited for, even if there is none."""
    extra: dict[str, Any] = {}
    failure: DtqError | None = None
    if wait is not None:
        try:
            extra["result"] = wait_for_result(client, task_id, wait)
        except DtqError as error:
            failure = error
    print_json({**msgspec.structs.asdict(client.get(task_id)), **extra})
    if failure is not None:
        raise failure


def positional_of(text: str) -> list[Any]:
    """Read the option ``--args``. Errors as :func:`named_of`."""
    value = _decode("--args", sys.stdin.buffer.read() if text == "-" else text, "'[42, \"a\"]'")
    if not isinstance(value, list):
        one = text if len(text) <= _LONGEST_HINT and text != "-" else "…"
        hint = shlex.quote(f"[{one}]")
        raise InvalidArgumentsError(f"--args takes a JSON list: write --args {hint}")
    return value


def named_of(text: str) -> dict[str, Any]:
    """Read the option ``--kwargs``.

    Raises:
        InputError: if it is no JSON object.
    """
    example = "'{\"user_id\": 42}'"
    value = _decode("--kwargs", text, example)
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"--kwargs takes a JSON object: write --kwargs {example}")
    return value


def _decode(option: str, text: str | bytes, example: str) -> Any:
    try:
        return codec.decode(text, option)
    except EncodingError as error:
        raise EncodingError(f"{error}; write, for example, {option} {example}") from None
