from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from api.site import Site
from dashboard.desk import Desk
from dtq_core.embedded import start_temporary

_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with start_temporary() as server:
        yield server.url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, as the system has it."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=list(_OPTIONS))
        yield made
        made.close()


@pytest.fixture
def site(redis_url: str, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, redis_url)
    yield made
    made.close()


@pytest.fixture
def desk(site: Site) -> Iterator[Desk]:
    made = Desk(site)
    yield made
    made.close()


@pytest.fixture
def troubles() -> list[str]:
    """What the browser complained of: refused by the policy, thrown by a script, or an alert."""
    return []


@pytest.fixture
def page(browser: Browser, desk: Desk, troubles: list[str]) -> Iterator[Page]:
    """A tab before the dashboard."""
    context = browser.new_context(base_url=desk.api.url, locale="en-GB", timezone_id="Asia/Tokyo")
    made = context.new_page()
    made.set_default_timeout(20_000)
    made.on("console", lambda message: troubles.append(message.text))
    made.on("pageerror", lambda error: troubles.append(str(error)))

    def refuse(dialog: object) -> None:
        troubles.append("a dialog")
        dialog.dismiss()  # type: ignore[attr-defined]

    made.on("dialog", refuse)
    yield made
    context.close()
