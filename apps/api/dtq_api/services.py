"""What the routes work with: one client, one store for blocking calls, the keys of callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from dtq_api.bodies import read_json
from dtq_api.keyring import Caller, Keyring
from dtq_client import AsyncClient
from dtq_core.api_keys import Role
from dtq_core.settings import Settings
from dtq_core.store import Store

T = TypeVar("T")

_MOST_RETRY_S = 2.0
"""How long a request waits for a server that is away; then its caller is told to come back."""
MAX_OVERHEAD_BYTES = 65_536
"""What the body of one task may have besides its payload; what operators send is no longer."""


@dataclass(frozen=True)
class Services:
    """Of one running API."""

    settings: Settings
    client: AsyncClient
    store: Store
    keyring: Keyring

    @classmethod
    def start(cls, settings: Settings, *, public: bool) -> Services:
        """Prepare; nothing is sent yet."""
        settings = replace(settings, retry_timeout=min(settings.retry_timeout, _MOST_RETRY_S))
        client = AsyncClient(**{f.name: getattr(settings, f.name) for f in fields(settings)})
        return cls(settings, client, Store(settings), Keyring(client.store, public=public))

    async def stop(self) -> None:
        """Close the connections."""
        await self.client.close()
        self.store.close()


async def services_of(request: Request) -> Services:
    """The services of the application that got a request."""
    services: Services = request.app.state.services
    return services


def caller_of(request: Request) -> Caller:
    """Who asks, as the gate has found."""
    caller: Caller = request.state.caller
    return caller


def needs(*roles: Role) -> Any:
    """Return the dependency that is the caller, who must be allowed one of some roles."""

    async def check(request: Request) -> Caller:
        caller = caller_of(request)
        caller.require(*roles)
        return caller

    check.roles = roles  # type: ignore[attr-defined]  # for the page on security, and its test
    return Depends(check)


Used = Annotated[Services, Depends(services_of)]
Follower = Annotated[Caller, needs(Role.SUBMIT, Role.READ)]
Reader = Annotated[Caller, needs(Role.READ)]
Submitter = Annotated[Caller, needs(Role.SUBMIT)]
Operator = Annotated[Caller, needs(Role.OPERATE)]
Administrator = Annotated[Caller, needs(Role.ADMIN)]


async def small_body(request: Request, kind: type[T]) -> T:
    """Return the body of a request that holds no payload. Errors as :func:`read_json`."""
    limit_s = (await services_of(request)).settings.api_read_timeout
    return await read_json(request, kind, MAX_OVERHEAD_BYTES, limit_s)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a value as JSON."""
    text = msgspec.json.encode(value)
    return Response(text, status, headers, "application/json")
