"""Who asks: API keys, as they stand in Redis, looked at again every second."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from dtq_api.problems import Kind, Problem
from dtq_core import reads
from dtq_core.api_keys import ApiKey, Role, StoredKey, decode_key, matches, parse_token
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError
from dtq_core.store import AsyncStore

_LOOK_AGAIN_S = 1.0
_SCHEME = "bearer"


class Caller(NamedTuple):
    """Who asks.

    Attributes:
        key: the API key; None where none was ever made, and whoever reaches the API may do all.
    """

    key: ApiKey | None

    @property
    def who(self) -> str:
        """As the audit log names it."""
        return f"key:{self.key.name}" if self.key else "http"

    @property
    def key_owner(self) -> str:
        """Whose idempotency keys are meant."""
        return self.key.name if self.key else ""

    def require(self, *roles: Role) -> None:
        """Raise a :class:`Problem` unless one of these roles is allowed."""
        if self.key is not None and not any(map(self.key.allows, roles)):
            names = " or ".join(roles)
            raise Problem(Kind.FORBIDDEN, f"this needs an API key with the role {names}")

    def reaches(self, queue: str) -> bool:
        """Whether tasks of a queue are the caller's business."""
        return self.key is None or self.key.reaches(queue)

    def require_queue(self, queue: str) -> None:
        """Raise a :class:`Problem` unless a queue may be reached."""
        if not self.reaches(queue):
            raise Problem(Kind.FORBIDDEN, f"this API key does not reach the queue {queue}")

    @property
    def limited(self) -> bool:
        """Whether only some queues are the caller's business."""
        return self.key is not None and bool(self.key.queues)

    def require_all_queues(self) -> None:
        """Raise a :class:`Problem` where the key is limited to some queues."""
        if self.limited:
            raise Problem(Kind.FORBIDDEN, "this needs an API key that is not limited to queues")

    def queue_to_list(self, queue: str | None) -> str | None:
        """Return the queue whose things are listed: the one asked for, or the only one reached.

        Raises:
            Problem: if it may not be reached, or several may and none was asked for.
        """
        if queue is None and self.key is not None and self.key.queues:
            if len(self.key.queues) > 1:
                names = ", ".join(self.key.queues)
                raise Problem(Kind.FORBIDDEN, f"this API key reaches {names}: name one of them")
            return self.key.queues[0]
        if queue is not None:
            self.require_queue(queue)
        return queue


ANYBODY = Caller(None)


class Keyring:
    """The API keys of a deployment."""

    def __init__(self, store: AsyncStore, *, public: bool) -> None:
        """Prepare.

        Args:
            store: where they are.
            public: whether others than this machine can reach the API, so that nobody may do
                anything without a key.
        """
        self._store = store
        self._keys: dict[str, StoredKey] = {}
        self._asked_for = public
        self._looked_s = float("-inf")
        self._failure: RedisError | None = None
        self._looking = asyncio.Lock()

    async def caller(self, authorization: str | None) -> Caller:
        """Return who asks.

        Args:
            authorization: the header of this name.

        Raises:
            Problem: unless it holds a live API key, or none was ever made and the API is not
                public.
            RedisError: if the server cannot say which keys there are.
        """
        await self._look()
        if not self._asked_for:
            return ANYBODY
        key = self._find(authorization or "")
        if key is None:
            detail = "send a live API key: Authorization: Bearer dtq_…"
            challenge = {"WWW-Authenticate": 'Bearer realm="dtq"'}
            raise Problem(Kind.UNAUTHENTICATED, detail, headers=challenge)
        return Caller(key)

    async def lives(self, caller: Caller) -> bool:
        """Tell whether a caller may still ask. Errors as :meth:`caller`."""
        await self._look()
        if caller.key is None:
            return not self._asked_for
        stored = self._keys.get(caller.key.id)
        return stored is not None and stored.key.revoked_at is None

    def _find(self, authorization: str) -> ApiKey | None:
        scheme, _, token = authorization.partition(" ")
        shown = parse_token(token.strip()) if scheme.lower() == _SCHEME else None
        stored = self._keys.get(shown.id) if shown else None
        if shown is None or stored is None or not matches(stored, shown):
            return None
        return stored.key if stored.key.revoked_at is None else None

    async def _look(self) -> None:
        """Look at the keys, once a second; those who ask meanwhile share what was found.

        A failure is shared as well: behind a silent server, callers must not wait one by one.
        """
        if mono_s() - self._looked_s >= _LOOK_AGAIN_S:
            async with self._looking:
                if mono_s() - self._looked_s >= _LOOK_AGAIN_S:
                    await self._read()
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    async def _read(self) -> None:
        self._failure = None
        keys = self._store.partitions.all[0]
        try:
            found = await self._store.read(reads.api_keys(keys), retry_s=0)
        except RedisError as error:
            self._failure = error
        else:
            stored = filter(None, map(decode_key, found.values()))
            self._keys = {one.key.id: one for one in stored}
            self._asked_for = self._asked_for or bool(found)
        self._looked_s = mono_s()
