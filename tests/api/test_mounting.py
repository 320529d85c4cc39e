"""The application inside a program's own."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from dtq_api import create_app
from dtq_client.operating.api_keys import create_key
from dtq_core.settings import Settings
from dtq_core.store import Store


async def test_it_is_mounted_under_a_path_of_its_own(settings: Settings, store: Store) -> None:
    api = create_app(settings, public=False)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with api.router.lifespan_context(api):
            yield

    app = Starlette(routes=[Mount("/queue", api)], lifespan=lifespan)
    async with lifespan(app), client_of(app) as http:
        answer = await http.post("/queue/v1/tasks", json={"name": "add", "args": [1, 2]})
        assert answer.status_code == 201
        location = answer.headers["location"]
        assert location == f"/queue/v1/tasks/{answer.json()['id']}"
        assert (await http.get(location)).json()["args"] == [1, 2]
        assert (await http.get("/queue/healthz")).status_code == 200


async def test_nothing_is_served_without_a_key_unless_it_is_said_to_be_local(
    settings: Settings, store: Store
) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), client_of(app) as http:
        assert (await http.get("/v1/tasks")).status_code == 401
        _, token = create_key(store, "shop", ["read"], [], "os:test@here")
        headers = {"Authorization": f"Bearer {token}"}
    async with app.router.lifespan_context(app), client_of(app) as http:
        assert (await http.get("/v1/tasks", headers=headers)).status_code == 200


def client_of(app: object) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")
