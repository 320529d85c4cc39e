"""The token of an operation: what the outside world knows it by."""

from __future__ import annotations

from uuid import UUID, uuid5

_SPACE = UUID("5d0f4c3e-6a0b-5d0e-9b64-0a6f2f1c7a11")


class OperationToken(str):
    """The same in every attempt, and no other operation has it: 36 characters, a UUID.

    Given to a service as its idempotency key, it keeps that service from doing the same twice. A
    parameter of a guarded function that is annotated with this class is filled in.
    """

    __slots__ = ()


def token_of(task_id: str, name: str) -> OperationToken:
    """Return the token of an operation of a task."""
    return OperationToken(uuid5(_SPACE, f"{task_id}:{name}"))
