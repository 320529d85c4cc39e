"""Log lines: for a person on a terminal, JSON elsewhere. Set up by commands, never by an import.

Whatever a handler writes, with structlog or with the standard library, names the attempt that wrote
it. A program that sets up its own logging adds :func:`add_attempt` or :class:`AttemptFilter`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import structlog

from dtq_core.settings import Settings

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_attempt: ContextVar[Mapping[str, Any]] = ContextVar("dtq_attempt", default=_NOTHING)


def bind_attempt(fields: Mapping[str, Any]) -> None:
    """Have lines that are written from here on, in this context, name an attempt."""
    _attempt.set(fields)


def add_attempt(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add ``task_id`` and ``attempt`` to a line that a handler writes; a structlog processor."""
    for name, value in _attempt.get().items():
        event.setdefault(name, value)
    return event


class AttemptFilter(logging.Filter):
    """Gives every record of the standard library ``task_id`` and ``attempt``, for its format.

    Outside of a handler both are empty.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; no record is left out."""
        fields = _attempt.get()
        for name in ("task_id", "attempt"):
            setattr(record, name, fields.get(name, ""))
        return True


def configure(settings: Settings) -> None:
    """Send log lines to stderr, in the form that the settings ask for.

    Lines of the standard library's loggers too. Control characters in values are escaped, so that a
    line stays one line.
    """
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    renderer = _renderer(settings)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            add_attempt,
            structlog.processors.add_log_level,
            _timestamp,
            structlog.processors.format_exc_info,
            _printable,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _configure_standard(level, renderer)


_timestamp = structlog.processors.TimeStamper(fmt="iso", utc=True)


def _renderer(settings: Settings) -> structlog.typing.Processor:
    wanted = settings.log_format
    if wanted == "pretty" or (wanted == "auto" and sys.stderr.isatty()):
        return structlog.dev.ConsoleRenderer(pad_event_to=0)
    return structlog.processors.JSONRenderer()


def _configure_standard(level: int, renderer: structlog.typing.Processor) -> None:
    """Have the standard library's loggers write the same lines, with their name as ``logger``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                add_attempt,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ExtraAdder(),
                _timestamp,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _printable,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def _printable(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = value.encode("unicode_escape").decode("ascii")
    return event
