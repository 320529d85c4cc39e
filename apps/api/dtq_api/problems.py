"""What goes wrong, as RFC 9457 problem documents; their types are stable, their texts are not."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from starlette.responses import Response

from dtq_core.errors import (
    ApiKeyNotFoundError,
    CorruptDataError,
    DtqError,
    InputError,
    LetterNotFoundError,
    OutcomeUnknownError,
    QueueNotFoundError,
    RedisDeniedError,
    RedisError,
    RedisFullError,
    RedisUnavailableError,
    RedisUnfitError,
    ResultExpiredError,
    ScheduleNotFoundError,
    TaskNotFoundError,
    TooLargeError,
)

MEDIA_TYPE = "application/problem+json"
_URN = "urn:dtq:problem:"
RETRY_AFTER_S = 1
"""When to try again, where only time helps."""


class _Kind(NamedTuple):
    name: str
    status: HTTPStatus
    title: str


class Kind(_Kind, Enum):
    """Every kind of problem: the end of its type, its status, and its title."""

    BAD_REQUEST = "bad-request", HTTPStatus.BAD_REQUEST, "The request cannot be understood"
    MALFORMED_JSON = "malformed-json", HTTPStatus.BAD_REQUEST, "The body is not JSON"
    INVALID_KEY = (
        "invalid-idempotency-key",
        HTTPStatus.BAD_REQUEST,
        "The idempotency key is not allowed",
    )
    UNAUTHENTICATED = "unauthenticated", HTTPStatus.UNAUTHORIZED, "A valid API key is needed"
    FORBIDDEN = "forbidden", HTTPStatus.FORBIDDEN, "The API key does not allow this"
    NOT_FOUND = "not-found", HTTPStatus.NOT_FOUND, "There is nothing at this address"
    TASK_NOT_FOUND = "task-not-found", HTTPStatus.NOT_FOUND, "There is no such task"
    LETTER_NOT_FOUND = (
        "dead-letter-not-found",
        HTTPStatus.NOT_FOUND,
        "The task has no dead letter",
    )
    QUEUE_NOT_FOUND = "queue-not-found", HTTPStatus.NOT_FOUND, "There is no such queue"
    SCHEDULE_NOT_FOUND = "schedule-not-found", HTTPStatus.NOT_FOUND, "There is no such schedule"
    METHOD_NOT_ALLOWED = (
        "method-not-allowed",
        HTTPStatus.METHOD_NOT_ALLOWED,
        "This address does not take this method",
    )
    TOO_SLOW = "too-slow", HTTPStatus.REQUEST_TIMEOUT, "The request came too slowly"
    IN_PROGRESS = "in-progress", HTTPStatus.CONFLICT, "The task of this key has not ended"
    RESULT_EXPIRED = "result-expired", HTTPStatus.GONE, "The result is no longer kept"
    TOO_LARGE = "too-large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large"
    MEDIA_TYPE = (
        "unsupported-media-type",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "The body is not application/json",
    )
    INVALID = "invalid", HTTPStatus.UNPROCESSABLE_ENTITY, "The request holds what is not allowed"
    KEY_CONFLICT = (
        "idempotency-key-reused",
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The idempotency key belongs to another request",
    )
    TOO_MANY = "too-many-requests", HTTPStatus.TOO_MANY_REQUESTS, "Too many requests"
    INTERNAL = "internal", HTTPStatus.INTERNAL_SERVER_ERROR, "The API has met a fault of its own"
    UNFIT = (
        "unfit-redis",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "The Redis of this deployment cannot do this",
    )
    UNAVAILABLE = "unavailable", HTTPStatus.SERVICE_UNAVAILABLE, "Try again later"
    OUTCOME_UNKNOWN = (
        "outcome-unknown",
        HTTPStatus.GATEWAY_TIMEOUT,
        "The task may have been accepted or not",
    )

    @property
    def type(self) -> str:
        """The URI that names it."""
        return _URN + self[0]


class Problem(Exception):
    """A request that is answered with a problem document."""

    def __init__(
        self, kind: Kind, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        """Say what is wrong.

        Args:
            kind: its type, status and title.
            detail: what is wrong with this very request.
            headers: of the answer.
            members: further ones of the document.
        """
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.members = members
        self.headers = dict(headers or {})
        if kind.status in _ASK_AGAIN:
            self.headers.setdefault("Retry-After", str(RETRY_AFTER_S))

    def document(self) -> dict[str, Any]:
        """The problem document."""
        return {
            "type": self.kind.type,
            "title": self.kind.title,
            "status": int(self.kind.status),
            "detail": self.detail,
            **self.members,
        }

    def response(self) -> Response:
        """The answer to the request."""
        text = msgspec.json.encode(self.document())
        return Response(text, self.kind.status, self.headers, MEDIA_TYPE)


_ASK_AGAIN = {
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}

# The first that fits. A detail of None: the error's own text names servers, which are nobody's
# business who only has a key.
_OF_ERRORS: tuple[tuple[type[DtqError], Kind, str | None], ...] = (
    (TooLargeError, Kind.TOO_LARGE, None),
    (InputError, Kind.INVALID, None),
    (TaskNotFoundError, Kind.TASK_NOT_FOUND, None),
    (QueueNotFoundError, Kind.QUEUE_NOT_FOUND, None),
    (ScheduleNotFoundError, Kind.SCHEDULE_NOT_FOUND, None),
    (LetterNotFoundError, Kind.LETTER_NOT_FOUND, None),
    (ApiKeyNotFoundError, Kind.NOT_FOUND, None),
    (ResultExpiredError, Kind.RESULT_EXPIRED, None),
    (OutcomeUnknownError, Kind.OUTCOME_UNKNOWN, "no confirmation came in time; ask again"),
    (RedisUnavailableError, Kind.UNAVAILABLE, "Redis cannot be reached, or cannot serve for now"),
    (RedisFullError, Kind.UNAVAILABLE, "Redis is out of memory; nothing was written"),
    (RedisDeniedError, Kind.UNFIT, "the user of the API lacks a right in Redis"),
    (RedisUnfitError, Kind.UNFIT, "Redis is not fit for what was asked, or laid out otherwise"),
    (CorruptDataError, Kind.UNFIT, "a key that was asked for holds what dtq did not put there"),
    (RedisError, Kind.UNFIT, "Redis has refused a command"),
    (DtqError, Kind.INTERNAL, "an error that nobody has foreseen here"),
)


def of_error(error: DtqError) -> Problem:
    """Return the problem that an error of dtq is to the caller of the API."""
    kind, text = next((k, t) for e, k, t in _OF_ERRORS if isinstance(error, e))
    members: dict[str, Any] = {}
    if isinstance(error, OutcomeUnknownError):
        members["task_ids"] = list(error.task_ids)
    return Problem(kind, str(error) if text is None else text, **members)
