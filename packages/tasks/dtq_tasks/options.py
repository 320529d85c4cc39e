"""The keywords of ``@task(…)`` and ``task.options(…)``, each named and typed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from dtq_core.errors import InvalidOptionError
from dtq_tasks.failures import ErrorTypes
from dtq_tasks.retry import RetryPolicy

RunsIn = Literal["loop", "thread"]


class Defaults(TypedDict, total=False):
    """What a task says about its submissions, and each submission may say otherwise."""

    queue: str
    band: str
    max_attempts: int
    ttl: float | None
    dead_letter: bool


class Overrides(Defaults, total=False):
    """What one submission may ask for; see :class:`dtq_core.record.Options`."""

    delay: float
    timeout: float | None
    result_ttl: float | None
    idempotency_key: str | None
    durability: str | None


class Declaration(Defaults, total=False):
    """What a task is declared with; see :class:`dtq_tasks.Task`."""

    name: str | None
    retry: RetryPolicy
    retry_on: ErrorTypes
    give_up_on: ErrorTypes
    timeout: float | None
    result_ttl: float | None
    runs: RunsIn | None
    cron: str | None
    tz: str
    misfire: str
    overlap: str


def check_keywords(given: Mapping[str, Any], allowed: type[Any], where: str) -> None:
    """Check the names of keywords.

    Args:
        given: the keywords.
        allowed: the TypedDict that names all there are.
        where: whose they are, for the message.

    Raises:
        InvalidOptionError: if there is one of another name.
    """
    known = allowed.__annotations__.keys()
    for name in given.keys() - known:
        raise InvalidOptionError(f"{where} has no option {name!r}: use {', '.join(sorted(known))}")
