"""A deployment with API processes, asked over real HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx

from cli.terminal import Terminal, eventually
from dtq_client.operating.api_keys import create_key

LIMIT_S = 20.0


class Api:
    """One API process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line, process.communicate()
        self.url = json.loads(line)["url"]
        self.http = httpx.Client(base_url=self.url, timeout=LIMIT_S)

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.url)
        return url.host, url.port or 0

    def stop(self) -> str:
        """Stop it in order; returns what it has logged."""
        self.http.close()
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0, err
        return err


class Site(Terminal):
    """Runs commands and APIs, and asks the first of these."""

    def __init__(self, folder: Path, url: str | None, **settings: Any) -> None:
        super().__init__(folder, url, **settings)
        self.apis: list[Api] = []

    def start_api(self, *options: str, **settings: Any) -> Api:
        """Start an API, and wait until it serves."""
        level = {"log_level": "info", "log_format": "json", **settings}
        api = Api(self.start("api", "--port", "0", *options, **level))
        self.apis.append(api)
        return api

    @cached_property
    def api(self) -> Api:
        """The first API, started when it is used."""
        return self.start_api()

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.api.http.get(path, params=query)

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.http.post(path, json={} if body is None else body, headers=named)

    def accepted(self, name: str, *args: Any, **options: Any) -> str:
        """Submit a task over HTTP, and return its id."""
        answer = self.post("/v1/tasks", {"name": name, "args": args, **options})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def token(self, name: str, *roles: str, queues: tuple[str, ...] = ()) -> str:
        """Make an API key, and return its token."""
        _, token = create_key(self.client.store, name, roles, queues, "os:test@here")
        return str(token)

    def close(self) -> None:
        for api in self.apis:
            api.http.close()
        super().close()


def problem(answer: httpx.Response, status: int, name: str) -> dict[str, Any]:
    """Check that an answer is a problem document of a type, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert (found["type"], found["status"]) == (f"urn:dtq:problem:{name}", status)
    assert found["title"]
    assert found["detail"]
    if status in {409, 429, 503, 504}:
        assert int(answer.headers["retry-after"]) >= 1
    return found


__all__ = ["Api", "Site", "eventually", "problem"]
