"""API keys: who may ask the HTTP API for what.

A key is a token, ``dtq_<id>_<secret>``, shown once. Only the SHA-256 of its secret is stored: the
secret is 256 random bits, which no dictionary holds, so a slow hash would protect nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

_TOKEN = re.compile(r"dtq_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_ID_BYTES = 6
_SECRET_BYTES = 32


class Role(StrEnum):
    """What a key may be used for."""

    SUBMIT = "submit"
    """Submit tasks, and follow a task by its id."""
    READ = "read"
    """Look at everything but the audit log."""
    OPERATE = "operate"
    """Read; cancel, pause, resume, requeue, fire and pause schedules."""
    ADMIN = "admin"
    """Everything: also purge, change schedules, read the audit log."""


_INCLUDED = {
    Role.SUBMIT: {Role.SUBMIT},
    Role.READ: {Role.READ},
    Role.OPERATE: {Role.OPERATE, Role.READ},
    Role.ADMIN: set(Role),
}


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key as readers see it, without its secret.

    Attributes:
        name: unique; the audit log says it, and idempotency keys belong to it.
        id: part of the token.
        roles: what it may be used for.
        queues: those it is limited to; none for all.
        created_at: RFC 3339, Redis time.
        created_by: who made it.
        revoked_at: since when it is good for nothing; None while it lives.
    """

    name: str
    id: str
    roles: Sequence[Role]
    queues: Sequence[str]
    created_at: str
    created_by: str
    revoked_at: str | None = None

    def allows(self, role: Role) -> bool:
        """Tell whether it may be used so."""
        return any(role in _INCLUDED[own] for own in self.roles)

    def reaches(self, queue: str) -> bool:
        """Tell whether it may be used for tasks of a queue."""
        return not self.queues or queue in self.queues


class StoredKey(msgspec.Struct, frozen=True):
    """An API key as it is stored: with the hash of its secret."""

    key: ApiKey
    hash: str


class Token(NamedTuple):
    """What a caller shows: which key, and its secret."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"dtq_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"<Token {self.id}>"


def new_token() -> Token:
    """Return a token that nobody has."""
    return Token(secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES))


def parse_token(text: str) -> Token | None:
    """Return what a text says; None where it is no token."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else Token(found[1], found[2])


def hash_of(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(stored: StoredKey, token: Token) -> bool:
    """Tell whether a token is that of a key, in a time that does not tell how much of it is."""
    return hmac.compare_digest(stored.hash, hash_of(token.secret))


def encode_key(stored: StoredKey) -> bytes:
    """Encode a key as it is stored."""
    return msgspec.json.encode(stored)


def decode_key(text: bytes) -> StoredKey | None:
    """Decode a stored key; None where it cannot be read, and is good for nothing."""
    try:
        return msgspec.json.decode(text, type=StoredKey)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
