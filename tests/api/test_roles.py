"""Who may do what: every route, method and role in one table (scenario P2)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from api.site import Api, Site, eventually, problem
from dtq_api import create_app
from dtq_client.operating.api_keys import revoke_key
from dtq_core.api_keys import Role

ID = "0" * 32
FOLLOW = {Role.SUBMIT, Role.READ, Role.OPERATE, Role.ADMIN}
SUBMIT = {Role.SUBMIT, Role.ADMIN}
READ = {Role.READ, Role.OPERATE, Role.ADMIN}
OPERATE = {Role.OPERATE, Role.ADMIN}
ADMIN = {Role.ADMIN}
ROUTES = {
    ("POST", "/v1/tasks"): SUBMIT,
    ("POST", "/v1/tasks/batch"): SUBMIT,
    ("GET", "/v1/tasks"): READ,
    ("GET", "/v1/tasks/{task_id}"): FOLLOW,
    ("GET", "/v1/tasks/{task_id}/result"): FOLLOW,
    ("GET", "/v1/tasks/{task_id}/attempts"): FOLLOW,
    ("GET", "/v1/tasks/{task_id}/events"): FOLLOW,
    ("POST", "/v1/tasks/{task_id}/cancel"): OPERATE,
    ("GET", "/v1/queues"): READ,
    ("POST", "/v1/queues/{queue}/pause"): OPERATE,
    ("POST", "/v1/queues/{queue}/resume"): OPERATE,
    ("POST", "/v1/queues/{queue}/purge"): ADMIN,
    ("GET", "/v1/dead-letters"): READ,
    ("POST", "/v1/dead-letters/requeue"): OPERATE,
    ("POST", "/v1/dead-letters/purge"): ADMIN,
    ("GET", "/v1/schedules"): READ,
    ("PUT", "/v1/schedules/{name}"): ADMIN,
    ("DELETE", "/v1/schedules/{name}"): ADMIN,
    ("POST", "/v1/schedules/{name}/pause"): OPERATE,
    ("POST", "/v1/schedules/{name}/resume"): OPERATE,
    ("POST", "/v1/schedules/{name}/run"): OPERATE,
    ("GET", "/v1/stats"): READ,
    ("GET", "/v1/workers"): READ,
    ("GET", "/v1/events"): READ,
    ("GET", "/v1/audit"): ADMIN,
    ("GET", "/v1/audit/check"): ADMIN,
    ("GET", "/metrics"): READ,
}
OPEN = (("GET", "/healthz"), ("GET", "/readyz"))
ANY_KEY = {("GET", "/openapi.json")}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.fixture(scope="module")
def tokens(site: Site) -> dict[str, str]:
    """A key of each role, one for another queue, and one that was revoked."""
    made = {role.value: site.token(role, role) for role in Role}
    made["elsewhere"] = site.token("elsewhere", "admin", queues=("elsewhere",))
    made["revoked"] = site.token("revoked", "admin")
    revoke_key(site.client.store, "revoked", "os:test@here")
    problem_of_stranger = lambda: site.get("/v1/queues").status_code == 401  # noqa: E731
    eventually("the API knows of the keys", problem_of_stranger)
    return made


def ask(api: Api, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
    path = path.format(task_id=ID, queue="q", name="s")
    headers: dict[str, Any] = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}".strip().encode("latin-1")
    with api.http.stream(method, path, headers=headers | more, content=b"{}") as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer
        answer.read()
        return answer


def test_every_route_is_in_the_table() -> None:
    """Of the paths that the OpenAPI document has, which are all."""
    app = create_app(redis_url="redis://nowhere", public=False)
    found = {
        (method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    assert found == ROUTES.keys() | set(OPEN)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_p2_a_role_may_do_what_the_table_says(
    site: Site, tokens: dict[str, str], route: tuple[str, str], role: Role
) -> None:
    answer = ask(site.api, *route, tokens[role])
    if role in ROUTES[route]:
        assert answer.status_code not in {401, 403}
        assert answer.status_code < 500
    else:
        problem(answer, 403, "forbidden")


WRONG = {
    "none": None,
    "empty": "",
    "another's": "dtq_0123456789ab_" + "A" * 43,
    "no token": "secret",
    "not ASCII": "\xe9",
}


@pytest.mark.parametrize("route", [*ROUTES, *ANY_KEY], ids=lambda route: f"{route[0]} {route[1]}")
def test_p2_nobody_is_served_without_a_live_key(
    site: Site, tokens: dict[str, str], route: tuple[str, str]
) -> None:
    good = tokens["admin"]
    shown = [good[:-1], f"{good}x", good.upper(), f"{good} {good}", tokens["revoked"]]
    for token in [*WRONG.values(), *shown]:
        problem(ask(site.api, *route, token), 401, "unauthenticated")
    for query in (f"?token={good}", f"?api_key={good}", f"?authorization=Bearer%20{good}"):
        problem(ask(site.api, route[0], route[1] + query), 401, "unauthenticated")
    for header in (f"Basic {good}", good, f"Token {good}"):
        problem(ask(site.api, *route, Authorization=header), 401, "unauthenticated")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path",
    [
        *("/", "/v1", "/v1/tasks/", "//v1/tasks", "/v1//tasks", "/V1/TASKS", "/v1/%2e%2e/tasks"),
        *("/v1/queues/../tasks", "/openapi.json", "/docs", "/redoc", "/metrics", "/nothing"),
        *(
            "/healthz/",
            "/healthz/../v1/tasks",
            "/readyz%2f..%2fv1%2ftasks",
            "/v1/tasks%00",
            "/healthz%3f",
        ),
    ],
)
def test_p2_no_other_way_leads_in(
    site: Site, tokens: dict[str, str], method: str, path: str
) -> None:
    with socket.create_connection(site.api.address, 5) as peer:
        peer.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: peer.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 401 "), answer
    assert b"access-control" not in answer.lower()


@pytest.mark.parametrize("route", [*ROUTES, *OPEN], ids=lambda route: f"{route[0]} {route[1]}")
def test_an_address_takes_its_own_methods_only(
    site: Site, tokens: dict[str, str], route: tuple[str, str]
) -> None:
    taken = {method for method, path in [*ROUTES, *OPEN] if path == route[1]}
    # What looks like the id of a task is one of the addresses beside it.
    taken |= {"GET"} if route[1] == "/v1/tasks/batch" else set()
    for method in set(METHODS) - taken - {"HEAD"}:
        problem(ask(site.api, method, route[1], tokens["admin"]), 405, "method-not-allowed")


def test_health_tells_everybody_and_nothing_else(site: Site, tokens: dict[str, str]) -> None:
    assert tokens
    for path in ("/healthz", "/readyz"):
        assert site.get(path).json() == {"status": "ok"}


def test_p2_a_websocket_is_no_way_in(site: Site, tokens: dict[str, str]) -> None:
    assert tokens
    answer = site.api.http.get(
        "/v1/events", headers={"Connection": "Upgrade", "Upgrade": "websocket"}
    )
    problem(answer, 401, "unauthenticated")


FORMS = ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""]


@pytest.mark.parametrize("media_type", [*FORMS, "application/json; charset=latin-1"])
@pytest.mark.parametrize(
    "route", [r for r in ROUTES if r[0] != "GET"], ids=lambda route: f"{route[0]} {route[1]}"
)
def test_p2_a_form_of_a_foreign_page_changes_nothing(
    site: Site, tokens: dict[str, str], route: tuple[str, str], media_type: str
) -> None:
    answer = ask(site.api, *route, tokens["admin"], **{"Content-Type": media_type})
    problem(answer, 415, "unsupported-media-type")


def test_a_key_for_a_queue_reaches_no_other(site: Site, tokens: dict[str, str]) -> None:
    token = tokens["elsewhere"]
    api = site.api

    def post(path: str, body: Any, who: str = token) -> httpx.Response:
        return api.http.post(path, json=body, headers={"Authorization": f"Bearer {who}"})

    def get(path: str) -> httpx.Response:
        return api.http.get(path, headers={"Authorization": f"Bearer {token}"})

    other = post("/v1/tasks", {"name": "add", "delay": 60}, tokens["submit"]).json()["id"]
    problem(post("/v1/tasks", {"name": "add"}), 403, "forbidden")
    (item,) = post("/v1/tasks/batch", {"tasks": [{"name": "add"}]}).json()["items"]
    assert item["status"] == 403
    own = post("/v1/tasks", {"name": "add", "queue": "elsewhere", "delay": 60}).json()["id"]
    assert [task["id"] for task in get("/v1/tasks").json()["tasks"]] == [own]
    assert [queue["queue"] for queue in get("/v1/queues").json()["queues"]] == ["elsewhere"]
    assert get(f"/v1/tasks/{own}").status_code == 200
    for rest in ("", "/result", "/attempts", "/events"):
        problem(get(f"/v1/tasks/{other}{rest}"), 404, "task-not-found")
    problem(post(f"/v1/tasks/{other}/cancel", {}), 404, "task-not-found")
    for path in ("/v1/tasks?queue=default", "/v1/dead-letters?queue=default"):
        problem(get(path), 403, "forbidden")
    for path in ("/v1/workers", "/v1/stats", "/v1/schedules", "/v1/audit", "/v1/audit/check"):
        problem(get(path), 403, "forbidden")
    for what in ("pause", "resume", "purge"):
        problem(post(f"/v1/queues/default/{what}", {}), 403, "forbidden")
    problem(post("/v1/dead-letters/purge", {"queue": "default"}), 403, "forbidden")
    problem(post("/v1/dead-letters/purge", {"ids": [other]}), 403, "forbidden")
    assert post("/v1/dead-letters/purge", {"all": True}).json()["matched"] == 0
    assert site.client.get(other).status == "SCHEDULED"


def test_p2_no_secret_is_told(site: Site, tokens: dict[str, str], lonely: Site) -> None:
    api = lonely.start_api(log_level="debug")
    token = lonely.token("shop", "submit")
    hidden = token.rpartition("_")[2]
    said = [
        ask(api, "GET", path, shown).text
        for path in ("/v1/tasks", "/nothing")
        for shown in (token, token[:-1], None)
    ]
    for path in (f"/v1/tasks/{token}", f"/v1/tasks?token={token}", f"/{token}"):
        ask(api, "GET", path, token)
    log = api.stop()
    key = lonely.raw.hgetall(f"{lonely.prefix}:apikeys")
    audit = lonely.raw.xrange(f"{lonely.prefix}:audit")
    assert hidden not in f"{log}{key}{audit}{said}"


def test_p2_nobody_else_is_served_before_there_is_a_key(lonely: Site) -> None:
    done = lonely.run("api", "--host", "0.0.0.0", "--port", "0")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("dtq: --host 0.0.0.0: others could reach the API")
    assert done.err.count("\n") == 1
    lonely.token("shop", "admin")
    api = lonely.start_api(api_host="0.0.0.0")
    assert ask(api, "GET", "/v1/tasks").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1"]
)
def test_p2_a_page_of_elsewhere_cannot_use_a_browser_here(
    site_without_keys: Site, host: str
) -> None:
    api = site_without_keys.api
    problem(api.http.get("/v1/tasks", headers={"Host": host}), 403, "forbidden")


@pytest.fixture(scope="module")
def site_without_keys(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("open"), redis_url)
    yield made
    made.close()


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8720", "127.0.0.1:1", "[::1]", "[::1]:8720"]
)
def test_a_program_of_this_machine_may_name_it_as_it_likes(
    site_without_keys: Site, host: str
) -> None:
    answer = site_without_keys.api.http.get("/v1/tasks", headers={"Host": host})
    assert answer.status_code == 200


def test_p2_a_page_of_another_origin_is_refused(site_without_keys: Site) -> None:
    http = site_without_keys.api.http
    problem(http.get("/v1/tasks", headers={"Origin": "https://evil.example"}), 403, "forbidden")
    assert http.get("/v1/tasks").status_code == 200


def test_keys_go_on_being_asked_for_after_the_last_one_is_revoked(lonely: Site) -> None:
    token = lonely.token("shop", "admin")
    api = lonely.start_api()
    assert ask(api, "GET", "/v1/tasks", token).status_code == 200
    assert revoke_key(lonely.client.store, "shop", "os:test@here")
    refused = lambda: ask(api, "GET", "/v1/tasks", token).status_code == 401  # noqa: E731
    eventually("the key to be refused", refused)
    again = lonely.start_api()
    assert ask(again, "GET", "/v1/tasks").status_code == 401


def test_a_caller_that_asks_too_often_is_told_when_to_come_back(lonely: Site) -> None:
    first, second = lonely.token("first", "read"), lonely.token("second", "read")
    api = lonely.start_api(api_rate=5)
    answers = [ask(api, "GET", "/v1/tasks", first) for _ in range(12)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 0 < len(refused) < 12
    problem(refused[0], 429, "too-many-requests")
    assert ask(api, "GET", "/v1/tasks", second).status_code == 200
    eventually("it may ask again", lambda: ask(api, "GET", "/v1/tasks", first).status_code == 200)
