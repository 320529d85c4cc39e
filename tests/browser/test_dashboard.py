"""The dashboard in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from api.site import Site, eventually
from dashboard.desk import PAGES

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def fill(site: Site) -> list[str]:
    """Make something to see on each page; return the address of a task of each fate."""
    site.start_worker()
    failed = site.submit("fail", EVIL, max_attempts=1)
    done = site.submit("echo", {EVIL: EVIL})
    for task_id in (failed, done):
        site.ended(task_id)
    running = site.submit("sleep", 60, queue="mail")
    site.started(running)
    site.ok("cron", "add", "nightly", "echo", "--cron", "30 2 * * *", "--args", "[1]")
    site.ok("pause", "mail", "--reason", EVIL)
    return [f"/tasks/{task_id}" for task_id in (failed, done, running)]


def test_nothing_runs_that_tasks_hold_and_nothing_is_refused(
    page: Page, site: Site, troubles: list[str]
) -> None:
    for path in (*fill(site), *PAGES, f"/tasks?name={EVIL}", f"/dead-letters?error={EVIL}"):
        page.goto(f"/dashboard{path}")
        page.wait_for_function(
            "document.querySelector('time') === null || document.querySelector('time').title !== ''"
        )
        assert page.locator("main img, main script").count() == 0, path
    page.goto("/dashboard/dead-letters")
    expect(page.locator("main")).to_contain_text(EVIL)
    page.wait_for_timeout(2_500)  # drawn again from what the server pushes
    assert page.locator("main img, main script").count() == 0
    assert troubles == []


@pytest.mark.parametrize("width", [320, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_its_window(page: Page, site: Site, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in (*fill(site), *PAGES):
        page.goto(f"/dashboard{path}")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, (path, wide)


def test_whoever_has_a_key_signs_in_and_out(page: Page, site: Site, troubles: list[str]) -> None:
    token = site.token("anna", "operate")
    eventually("a key to be asked for", lambda: "sign-in" in page.goto("/dashboard/").url)  # type: ignore[union-attr]
    page.get_by_label("API key").fill("rubbish")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("no live API key")
    page.get_by_label("API key").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.locator("header")).to_contain_text("anna")
    expect(page.get_by_role("link", name="Audit")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    assert [text for text in troubles if "401" not in text] == []


def test_an_open_page_shows_what_changes_by_itself(page: Page, site: Site) -> None:
    page.goto("/dashboard/tasks")
    expect(page.locator("main")).to_contain_text("No task matches")
    task_id = site.submit("echo", 1)
    expect(page.locator("main")).to_contain_text(task_id)
    site.client.cancel(task_id)
    expect(page.locator("tbody .status")).to_have_text("cancelled")


def test_an_action_asks_first_takes_a_reason_and_is_audited(page: Page, site: Site) -> None:
    for n in range(3):
        site.submit("echo", n, queue="mail")
    page.goto("/dashboard/queues")
    page.get_by_role("button", name="Purge").click()
    expect(page.locator("details[open]")).to_contain_text("Cancel all 3 tasks that wait in mail?")
    page.get_by_label("Reason").locator("visible=true").fill("wrong campaign")
    page.wait_for_timeout(4_500)  # what is pushed meanwhile does not draw over the form
    page.locator("details[open] form button").click()
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    expect(page.get_by_role("button", name="Purge")).to_have_count(0)
    page.goto("/dashboard/audit")
    expect(page.locator("tbody")).to_contain_text("wrong campaign")
    expect(page.locator("tbody")).to_contain_text("3 of 3")


def test_a_task_is_cancelled_and_a_dead_letter_requeued(page: Page, site: Site) -> None:
    waiting = site.submit("echo", 1, delay=600)
    page.goto(f"/dashboard/tasks/{waiting}")
    page.get_by_role("button", name="Cancel").click()
    page.locator("details[open] form button").click()
    expect(page.locator("h1 .status")).to_have_text("cancelled")
    worker = site.start_worker()
    failed = site.submit("fail", "x", max_attempts=1)
    site.ended(failed)
    worker.terminate()
    worker.wait(20)
    page.goto(f"/dashboard/tasks/{failed}")
    page.get_by_role("button", name="Requeue").click()
    page.locator("details[open] form button").click()
    expect(page.locator("h1 .status")).to_have_text("queued")


def test_times_are_in_the_zone_of_the_reader(page: Page, site: Site) -> None:
    task_id = site.submit("echo", 1)
    page.goto(f"/dashboard/tasks/{task_id}")
    told = page.locator("dd time").first
    expect(told).not_to_have_text(site.client.get(task_id).submitted_at or "")
    at = told.get_attribute("datetime")
    in_tokyo = page.evaluate(
        "at => new Intl.DateTimeFormat('en-GB', {timeStyle: 'medium', timeZone: 'Asia/Tokyo'})"
        ".format(new Date(at))",
        at,
    )
    assert in_tokyo in (told.text_content() or "")


def test_keys_lead_from_page_to_page(page: Page, site: Site) -> None:
    page.goto("/dashboard/")
    for key, name in (("t", "Tasks"), ("q", "Queues"), ("o", "Overview")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Queue")).to_be_focused()


def test_a_lost_connection_is_said_and_comes_back(page: Page, site: Site) -> None:
    page.goto("/dashboard/queues")
    expect(page.get_by_text("The connection is lost")).to_be_hidden()
    api = site.apis[0]
    port = api.address[1]
    api.stop()
    expect(page.get_by_text("The connection is lost")).to_be_visible()
    site.start_api("--dashboard", api_port=port)
