"""Tells a session of SQLAlchemy, without importing it where nobody else has."""

from __future__ import annotations

import sys
from typing import Any

from dtq_core.errors import InvalidOptionError


def is_session(value: Any) -> bool:
    """Whether a value is a session of SQLAlchemy, plain or asynchronous, scoped or not."""
    if value is None or "sqlalchemy" not in sys.modules:
        return False
    from dtq_tasks.operations.sql import SESSIONS

    return isinstance(value, SESSIONS)


def check_session(value: Any) -> Any:
    """Return a session, or None.

    Raises:
        InvalidOptionError: if it is anything else.
    """
    if value is None or is_session(value):
        return value
    raise InvalidOptionError(f"session is a {type(value).__name__}: use one of SQLAlchemy")
