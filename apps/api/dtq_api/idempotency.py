"""The header ``Idempotency-Key``.

draft-ietf-httpapi-idempotency-key-header makes it a quoted string (RFC 8941, section 3.3.3); most
clients send it bare. Both are read, and are the same key.
"""

from __future__ import annotations

import re

import msgspec
from starlette.requests import Request

from dtq_api.problems import Kind, Problem
from dtq_api.shapes import TaskRequest
from dtq_core.errors import InputError
from dtq_core.limits import check_idempotency_key

HEADER = "Idempotency-Key"
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPED = re.compile(r'\\(["\\])')


def key_of(request: Request) -> str | None:
    """Return the idempotency key of a request; None where it has none.

    Raises:
        Problem: for an empty, repeated or illegal one.
    """
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    if len(given) > 1:
        raise Problem(Kind.INVALID_KEY, "there is more than one idempotency key")
    quoted = _QUOTED.fullmatch(given[0])
    key = given[0] if quoted is None else _ESCAPED.sub(r"\1", quoted[1])
    try:
        return check_idempotency_key(key)
    except InputError as error:
        raise Problem(Kind.INVALID_KEY, str(error)) from None


def refuse_key(request: Request) -> None:
    """Refuse a key where none can be used.

    Raises:
        Problem: if there is one.
    """
    if HEADER in request.headers:
        raise Problem(Kind.INVALID_KEY, "give each item an idempotency_key of its own instead")


def under(asked: TaskRequest, key: str | None) -> TaskRequest:
    """Return a request under the idempotency key of its header."""
    return asked if key is None else msgspec.structs.replace(asked, idempotency_key=key)


PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Makes a request that is sent again the same task.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]{1,255}$"},
}
"""Its description in the OpenAPI document."""
