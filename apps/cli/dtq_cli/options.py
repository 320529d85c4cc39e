"""The options that commands share, and the deployment that they name."""

from __future__ import annotations

import contextlib
import functools
import getpass
import inspect
import os
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtq_core.limits import Band

if TYPE_CHECKING:
    from dtq_client import Client
    from dtq_core.settings import Settings
    from dtq_core.store import Store

TaskId = Annotated[str, typer.Argument(help="The task.", metavar="ID", show_default=False)]
Modules = Annotated[
    list[str],
    typer.Argument(help="What to import for its handlers.", metavar="MODULE", show_default=False),
]
Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        "-q",
        help="A queue to serve; may be repeated. Default: those of the handlers, and default.",
        show_default=False,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        "-c",
        help="Tasks that one process runs at the same time.",
        show_default=False,
    ),
]
Processes = Annotated[
    int | None,
    typer.Option("--processes", "-p", help="Worker processes.", show_default=False),
]
AllowEviction = Annotated[
    bool,
    typer.Option("--allow-eviction", help="Work on a Redis that may throw tasks away."),
]
QueueNames = Annotated[
    list[str], typer.Argument(help="The queues.", metavar="QUEUE", show_default=False)
]
Reason = Annotated[
    str, typer.Option("--reason", help="Why; kept in the audit log.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


Arguments = Annotated[
    str,
    typer.Option(
        "--args",
        help="Positional arguments, a JSON list; - reads it from stdin.",
        metavar="JSON",
    ),
]
NamedArguments = Annotated[
    str, typer.Option("--kwargs", help="Arguments by name, a JSON object.", metavar="JSON")
]
TaskQueue = Annotated[str, typer.Option("--queue", "-q", help="The queue.")]
TaskBand = Annotated[str, typer.Option("--band", help=f"Its priority: {', '.join(Band)}.")]
Ttl = Annotated[
    float | None,
    typer.Option(
        "--ttl",
        help="How long it may wait; after that it never starts.",
        metavar="SECONDS",
        show_default=False,
    ),
]
MaxAttempts = Annotated[int, typer.Option("--max-attempts", help="How often it may start.")]


@dataclass(frozen=True, slots=True)
class Common:
    """The options of every command: which deployment it talks to, and how it answers.

    Attributes:
        redis_url: the server, where it is given.
        prefix: what every key begins with, where it is given.
        partitions: how many there are, where it is given.
        json: whether the output is JSON.
    """

    redis_url: Annotated[
        str | None,
        typer.Option("--redis-url", help="The server.", metavar="URL", show_default=False),
    ] = None
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", help="What every key begins with.", show_default=False),
    ] = None
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", help="How many partitions there are.", show_default=False),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False

    @property
    def overrides(self) -> dict[str, Any]:
        """The settings that were given."""
        return {
            "redis_url": self.redis_url,
            "prefix": self.prefix,
            "partitions": self.partitions,
        }

    def settings(self, **more: Any) -> Settings:
        """Return the settings of this process.

        Args:
            more: settings that the command has options for; None means not given.

        Raises:
            SettingsError: for a wrong one.
        """
        from dtq_core.settings import load

        return load({**self.overrides, **more})

    def service_settings(self, **more: Any) -> Settings:
        """Return the settings of a process that goes on; JSON is the form of its log lines then.

        Arguments and errors as :meth:`settings`.
        """
        return self.settings(log_format="json" if self.json else None, **more)

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Open a client; a server that is away now is not waited for.

        Raises:
            DtqError: as of :class:`dtq_client.Client`.
        """
        from dtq_client import Client

        with Client(**self.overrides) as client:
            client.store.check(lay_out=False, retry_s=0)
            yield client

    @contextlib.contextmanager
    def store(self, **more: Any) -> Iterator[Store]:
        """Open a store on a server that is fit, for looking only.

        Args:
            more: settings that the command decides on.

        Raises:
            DtqError: as of :class:`dtq_core.store.Store` and its ``check``.
        """
        from dtq_core.store import Store

        store = Store(self.settings(**more))
        try:
            store.check(lay_out=False)
            yield store
        finally:
            store.close()


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is done that cannot be undone.

    Args:
        question: what is about to be done, with how much of it.
        yes: whether that was answered beforehand.

    Raises:
        InputError: where nobody can be asked.
        Exit: with 1, for any answer but yes.
    """
    from dtq_core.errors import InvalidOptionError

    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOptionError(f"{question} Nobody can be asked here: give --yes")
    typer.echo(f"{question} [y/N] ", nl=False, err=True)
    if input().strip().lower() not in {"y", "yes"}:
        raise typer.Exit(1)


def operator() -> str:
    """Return who runs this command, for the audit log: the user of the operating system."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        user = str(os.getuid())
    return f"os:{user}@{socket.gethostname()}"


COMMON_OPTIONS = frozenset(field.name for field in fields(Common))
"""What every command has an option for."""


def check_queues(names: list[str] | None) -> list[str] | None:
    """Check the names of queues; None where none was given.

    Raises:
        InvalidNameError: for one that breaks the rule.
    """
    from dtq_core.limits import check_name

    return [check_name("queue name", name) for name in names] if names else None


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters that are dataclasses of options are given one by one.

    Args:
        command: annotated as typer asks for; without such a parameter it is returned as it is.
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {p.name: p.annotation for p in signature.parameters.values() if _is_group(p)}
    if not groups:
        return command
    parameters: list[inspect.Parameter] = []
    in_order = sorted(signature.parameters.values(), key=lambda p: p.annotation is Common)
    for parameter in in_order:  # what all commands have comes last
        if parameter.name in groups:
            parameters += _parameters_of(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def spread_out(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **made)

    spread_out.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread_out


def _is_group(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)


def _parameters_of(group: Any) -> list[inspect.Parameter]:
    types = inspect.get_annotations(group, eval_str=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=types[field.name],
        )
        for field in fields(group)
    ]
