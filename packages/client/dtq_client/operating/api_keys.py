"""API keys of the HTTP API: making, listing and revoking them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dtq_core import reads
from dtq_core.api_keys import (
    ApiKey,
    Role,
    StoredKey,
    Token,
    decode_key,
    encode_key,
    hash_of,
    new_token,
)
from dtq_core.audit import Operation, operation
from dtq_core.clock import rfc3339
from dtq_core.errors import ApiKeyNotFoundError, InvalidOptionError
from dtq_core.limits import MAX_API_KEYS, check_name
from dtq_core.scripts import Code
from dtq_core.store import Store


def create_key(
    store: Store, name: str, roles: Iterable[str], queues: Sequence[str], who: str, reason: str = ""
) -> tuple[ApiKey, Token]:
    """Make an API key.

    Args:
        store: of the deployment.
        name: of the key. One that was revoked may be used again, and with it come the idempotency
            keys that were used under it.
        roles: what it may be used for.
        queues: those it is limited to; none for all.
        who: who does it, for the audit log.
        reason: why, for the audit log.

    Returns:
        The key, and the token, which nobody can find out again.

    Raises:
        InputError: for a name, role or reason that is refused, a name that a live key has, or too
            many keys; nothing was done.
        RedisError: if the server cannot do it.
    """
    check_name("name of the API key", name)
    wanted = _checked_roles(roles)
    limited = [check_name("queue name", queue) for queue in dict.fromkeys(queues)]
    scope = f"{name} roles={','.join(wanted)}" + "".join(f" queue={queue}" for queue in limited)
    act = operation("key.create", who, reason, scope)
    store.check(lay_out=True)
    found = _stored(store)
    before = found.get(name, b"")
    if before and _lives(decode_key(before)):
        raise InvalidOptionError(f"there is an API key of the name {name}: revoke it first")
    if not before and len(found) >= MAX_API_KEYS:
        raise InvalidOptionError(
            f"there are {len(found):,} API keys: use the name of a revoked one"
        )
    token = new_token()
    key = ApiKey(
        name=name,
        id=token.id,
        roles=wanted,
        queues=limited,
        created_at=_now(store),
        created_by=who,
    )
    _put(store, act, name, before, StoredKey(key, hash_of(token.secret)))
    return key, token


def list_keys(store: Store) -> list[ApiKey]:
    """Return all API keys ever made, by name, also the revoked ones.

    Raises:
        RedisError: if the server cannot say.
    """
    found = filter(None, map(decode_key, _stored(store).values()))
    return sorted((stored.key for stored in found), key=lambda key: key.name)


def revoke_key(store: Store, name: str, who: str, reason: str = "") -> bool:
    """Make an API key good for nothing; it stays in the list, so that keys go on being asked for.

    Arguments as :func:`create_key`.

    Returns:
        Whether it was good until then.

    Raises:
        InputError: for a name or reason that is refused.
        ApiKeyNotFoundError: if there is none of this name.
        RedisError: if the server cannot do it.
    """
    act = operation("key.revoke", who, reason, check_name("name of the API key", name))
    before = _stored(store).get(name)
    stored = None if before is None else decode_key(before)
    if before is None or stored is None:
        raise ApiKeyNotFoundError(name)
    if not _lives(stored):
        return False
    revoked = msgspec.structs.replace(stored.key, revoked_at=_now(store))
    _put(store, act, name, before, StoredKey(revoked, stored.hash))
    return True


def _checked_roles(roles: Iterable[str]) -> list[Role]:
    given = set(roles)
    if unknown := given - set(Role):
        raise InvalidOptionError(f"there is no role {min(unknown)!r}: use {', '.join(Role)}")
    if not given:
        raise InvalidOptionError(f"an API key needs a role: {', '.join(Role)}")
    return [role for role in Role if role in given]


def _stored(store: Store) -> dict[str, bytes]:
    return store.read(reads.api_keys(store.partitions.all[0]))


def _lives(stored: StoredKey | None) -> bool:
    return stored is not None and stored.key.revoked_at is None


def _now(store: Store) -> str:
    return rfc3339(store.read(reads.now_ms()))


def _put(store: Store, act: Operation, name: str, before: bytes, stored: StoredKey) -> None:
    code = store.run(store.calls[0].key_put(act, name, before, encode_key(stored)))
    if code is Code.CONFLICT:
        raise InvalidOptionError(f"somebody else has just changed the API key {name}")
