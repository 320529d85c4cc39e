"""Who may see the dashboard, and what each role may press."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.site import Site, eventually
from dashboard.desk import PAGES, Desk
from dtq_client.operating.api_keys import revoke_key
from dtq_dashboard.door import POLICY


@pytest.fixture
def keyed(site: Site) -> Iterator[Desk]:
    """A dashboard for which a key has to be had."""
    site.token("first", "admin")
    made = Desk(site)
    yield made
    made.close()


def led_to(desk: Desk, path: str) -> str:
    answer = desk.get(path)
    assert answer.status_code == 303
    return str(answer.headers["location"])


def test_whoever_has_no_key_is_asked_for_one(keyed: Desk) -> None:
    for path in (*PAGES, "/tasks/0", "/nothing"):
        assert led_to(keyed, path) == "/dashboard/sign-in"
    assert 'name="token"' in keyed.text("/sign-in")
    assert keyed.get("/static/dashboard.css").status_code == 200
    assert keyed.post("/queues/default/pause").status_code == 303


def test_a_key_lets_its_owner_in_until_it_is_revoked(keyed: Desk, site: Site) -> None:
    answer = keyed.sign_in(site.token("reader", "read"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/")
    cookie = answer.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", "path=/dashboard"):
        assert part in cookie
    assert "reader" in keyed.text("/")
    assert led_to(keyed, "/sign-in") == "/dashboard/"
    revoke_key(site.client.store, "reader", "os:test@here")
    eventually("the key to be refused", lambda: keyed.get("/").status_code == 303)


def test_signing_out_forgets_the_key(keyed: Desk, site: Site) -> None:
    keyed.sign_in(site.token("reader", "read"))
    assert keyed.post("/sign-out").status_code == 303
    assert led_to(keyed, "/") == "/dashboard/sign-in"


@pytest.mark.parametrize("token", ["", "x", "dtq_000000000000_" + "a" * 43, "é", "a" * 5_000])
def test_what_is_no_key_is_refused(keyed: Desk, token: str) -> None:
    answer = keyed.sign_in(token)
    assert answer.status_code == 401
    assert "no live API key" in answer.text
    assert "set-cookie" not in answer.headers


def test_a_key_that_may_only_submit_sees_nothing(keyed: Desk, site: Site) -> None:
    assert keyed.sign_in(site.token("shop", "submit")).status_code == 403


ACTS = {
    "/queues/mail/pause": "operate",
    "/queues/mail/resume": "operate",
    "/queues/mail/purge": "admin",
    "/tasks/{}/cancel": "operate",
    "/tasks/{}/requeue": "operate",
    "/dead-letters/requeue": "operate",
    "/dead-letters/purge": "admin",
    "/schedules/nightly/pause": "operate",
    "/schedules/nightly/resume": "operate",
    "/schedules/nightly/run": "operate",
}


@pytest.mark.parametrize("role", ["read", "operate", "admin"])
def test_roles_decide_what_is_shown_and_what_can_be_pressed(
    keyed: Desk, site: Site, role: str
) -> None:
    task_id = site.submit("echo", "x", queue="mail")
    site.ok("cron", "add", "nightly", "echo", "--cron", "30 2 * * *", "--args", "[1]")
    keyed.sign_in(site.token(role, role))
    shown = "".join(keyed.text(path) for path in (f"/tasks/{task_id}", "/queues", "/schedules"))
    for path, least in ACTS.items():
        address = path.format(task_id)
        allowed = role == "admin" or role == least
        status = keyed.post(address).status_code
        assert (status != 403) is allowed, (role, address, status)
        if address in shown:
            assert allowed, address
    assert ("/pause" in shown) is (role != "read")
    assert ("/purge" in shown) is (role == "admin")
    assert keyed.get("/audit").status_code == (200 if role == "admin" else 403)
    assert ("/dashboard/audit" in keyed.text("/")) is (role == "admin")


def test_a_key_of_some_queues_sees_and_reaches_only_these(keyed: Desk, site: Site) -> None:
    ours, theirs = (site.submit("echo", "x", queue=queue) for queue in ("mail", "bank"))
    keyed.sign_in(site.token("mailer", "operate", queues=("mail",)))
    assert "bank" not in keyed.text("/queues")
    assert theirs not in keyed.text("/tasks")
    assert ours in keyed.text("/tasks")
    assert keyed.get("/tasks?queue=bank").status_code == 403
    assert keyed.get(f"/tasks/{theirs}").status_code == 404
    assert keyed.post(f"/tasks/{theirs}/cancel").status_code == 404
    assert keyed.post("/queues/bank/pause").status_code == 403
    for path in ("/", "/workers", "/schedules"):
        assert keyed.get(path).status_code == 403


def test_pages_of_elsewhere_can_press_nothing(desk: Desk, site: Site) -> None:
    site.submit("echo", "x", queue="mail")
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://["):
        assert desk.post("/queues/mail/pause", origin=origin).status_code == 403
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert desk.http.post("/queues/mail/pause", headers=cross, data={}).status_code == 403
    assert site.json("queues")[0]["paused_since"] is None
    assert desk.post("/queues/mail/pause").status_code == 303


def test_without_keys_only_this_machine_is_served_under_its_own_name(desk: Desk) -> None:
    assert desk.get("/").status_code == 200
    assert desk.get("/", Host="evil.example").status_code == 403
    assert desk.get("/tasks", Host="evil.example:80").status_code == 403


def test_every_answer_forbids_what_the_dashboard_does_not_need(keyed: Desk, site: Site) -> None:
    answers = [keyed.get("/"), keyed.get("/sign-in"), keyed.get("/static/dashboard.js")]
    keyed.sign_in(site.token("admin", "admin"))
    answers += [keyed.get(path) for path in (*PAGES, "/nothing", "/tasks/0")]
    answers += [keyed.post("/queues/none/pause"), keyed.get("/static/none.js")]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY, answer.url
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
    assert "'unsafe" not in POLICY
    pages = "".join(
        answer.text for answer in answers if "html" in answer.headers.get("content-type", "")
    )
    assert "<script>" not in pages
    assert " style=" not in pages
    assert " onclick=" not in pages


def test_the_api_beside_it_is_as_it_was(keyed: Desk, site: Site) -> None:
    api = keyed.api.http
    keyed.sign_in(site.token("admin", "admin"))
    assert api.get("/v1/tasks").status_code == 401
    assert (
        api.get(
            "/v1/tasks", headers={"Cookie": f"dtq_key={keyed.http.cookies['dtq_key']}"}
        ).status_code
        == 401
    )
    assert api.get("/healthz").status_code == 200
    assert api.get("/").headers["location"] == "/dashboard/"
    assert api.get("/dashboard").headers["location"] == "/dashboard/"
    assert api.get("/dashboards").status_code == 401
