"""A browser without a screen: it keeps cookies, and sends the headers that browsers send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from api.site import LIMIT_S, Api, Site

PAGES = ("/", "/queues", "/tasks", "/dead-letters", "/workers", "/schedules", "/audit")


class Desk:
    """Asks the dashboard of a site, whose API is started for it."""

    def __init__(self, site: Site, api: Api | None = None) -> None:
        self.site = site
        self.api = api or site.start_api("--dashboard")
        self.http = httpx.Client(base_url=f"{self.api.url}/dashboard", timeout=LIMIT_S)

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(path, headers=_spelled(headers))

    def post(self, path: str, *, origin: str | None = None, **fields: Any) -> httpx.Response:
        """Send a form, as from a page of the dashboard unless an origin is given."""
        headers = {"Origin": origin or self.api.url}
        return self.http.post(path, data=fields or {"reason": ""}, headers=headers)

    def sign_in(self, token: str) -> httpx.Response:
        return self.post("/sign-in", token=token)

    def text(self, path: str) -> str:
        """A page that is to be there."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.text

    @contextmanager
    def following(self, path: str) -> Iterator[Iterator[str]]:
        """What a page sends that is open: its main part, each time it is another."""
        headers = {"Accept": "text/event-stream"}
        with self.http.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200
            yield _parts(answer.iter_lines())

    def close(self) -> None:
        self.http.close()


def _parts(lines: Iterator[str]) -> Iterator[str]:
    part: list[str] = []
    for line in lines:
        if line.startswith("data: "):
            part.append(line.removeprefix("data: "))
        elif not line and part:
            yield "\n".join(part)
            part = []


def _spelled(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
