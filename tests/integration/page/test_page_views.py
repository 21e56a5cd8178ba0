"""Views of those who run the platform, in a real browser: what they show, and that their buttons do what they say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.leaks import until
from tests.programs import ROOT, Embedded
from tests.services.browser import found_browser

BUILT = ROOT / "src" / "scrapeyard" / "gateway" / "built" / "index.html"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = [
    "/sites",
    "/system",
    "/alerts",
    "/workers",
    "/dead-letters",
    "/webhooks",
    "/proxies",
    "/cache",
    "/usage",
    "/keys",
    "/audit",
]
PATIENCE_MS = 60_000
pytestmark = pytest.mark.browser


class Desk:
    """A server with some work done, and a browser that an administrator has signed in with."""

    def __init__(self, yard: Embedded, browser: Browser) -> None:
        self.yard = yard
        self.browser = browser
        self.faults: list[str] = []
        self.page = self.open("/keys?new=1")
        self.secret = self._first_key()
        self.client = yard.client()
        self.client.headers["Authorization"] = f"Bearer {self.secret}"

    def open(self, path: str, key: str = "", **how: Any) -> Page:
        """A page of its own, signed in where a key is given. Notes errors of the console and requests elsewhere."""
        context = self.browser.new_context(base_url=self.yard.urls[0], **how)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda asked: self._note(asked.url))
        page.goto(path)
        if key:
            page.fill("input[type=password]", key)
            page.press("input[type=password]", "Enter")
            page.wait_for_selector("nav.menu")
        return page

    def at(self, path: str) -> Page:
        """The administrator's page, opened anew."""
        self.page.goto(path)
        return self.page

    def _note(self, url: str) -> None:
        if not url.startswith((self.yard.urls[0], "blob:", "data:")):
            self.faults.append(f"asked elsewhere: {url}")

    def _first_key(self) -> str:
        """The first key, made in the page: it ends the time when nobody is asked, and the page signs in with it."""
        page = self.page
        page.fill("dialog input[required]", "admin")
        page.click("dialog button[type=submit]")
        secret = page.input_value("dialog input.mono")
        page.get_by_role("button", name="I have copied it").click()
        return secret

    def call(self, method: str, path: str, **more: Any) -> Any:
        """A call of the API as administrator."""
        answer = self.client.request(method, path, **more)
        assert answer.status_code < 300, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    if not BUILT.exists() or not AXE.exists():
        pytest.skip("the page is not built; run `make page`")
    executable = found_browser("playwright")
    with Embedded() as yard, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable or None, args=["--no-sandbox"])
        desk = Desk(yard, browser)
        try:
            _fill(desk)
            yield desk
        finally:
            desk.client.close()
            browser.close()


def _fill(desk: Desk) -> None:
    """A job with failures and a webhook that nobody takes, a site with rules, a pool, a page that is kept."""
    shop = desk.yard.shop.url
    pages = [{"url": f"{shop}/product/{number}"} for number in range(1, 4)]
    dead = [{"url": f"http://127.0.0.1:9/{number}"} for number in range(3)]
    told = {"url": "http://127.0.0.1:9/told", "secret": "a-secret-of-sixteen"}
    policy = {"retries": 0}
    body = {"scraper": "builtin/page", "items": [*pages, *dead], "webhook": told, "policy": policy}
    job = desk.call("POST", "/api/jobs", json=body)["id"]
    desk.call("PUT", "/api/sites/shop.example", json={"rate": 4, "note": "their wish"})
    desk.call("PUT", "/api/proxies/office", json={"urls": ["http://user:word@127.0.0.1:3128"]})
    until(lambda: desk.call("GET", f"/api/jobs/{job}")["status"] == "completed", "the job ends")
    until(lambda: desk.call("GET", "/api/webhooks/deliveries")["deliveries"], "a message is written")


def go(page: Page, path: str) -> None:
    """Open a view by the menu, as people do."""
    link = page.locator(f'nav.menu a[href="{path}"]:not(.health)')
    if not link.is_visible():
        page.click("nav.menu button")
    link.click()
    page.wait_for_selector("main h1")
    expect(page.locator(".skeleton")).to_have_count(0)


@pytest.mark.parametrize(
    ("width", "height", "theme", "language"), [(1440, 900, "light", "en-US"), (390, 844, "dark", "ko-KR")]
)
def test_views_are_whole_for_everybody(
    desk: Desk, tmp_path: Path, width: int, height: int, theme: Any, language: str
) -> None:
    size = {"width": width, "height": height}
    page = desk.open("/keys", desk.secret, viewport=size, color_scheme=theme, locale=language)
    checks = page.context.new_cdp_session(page)
    checks.send("Runtime.evaluate", {"expression": AXE.read_text()})  # as the developer tools do, past the policy
    for path in VIEWS:
        go(page, path)
        found = page.evaluate("axe.run()")["violations"]
        assert [(fault["id"], fault["nodes"][0]["html"]) for fault in found] == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
        assert bool(re.search("[가-힣]", page.inner_text("main h1"))) == (language == "ko-KR"), path
    page.context.close()
    assert desk.faults == []


def test_a_viewer_sees_all_and_is_offered_nothing_to_change(desk: Desk) -> None:
    key = desk.call("POST", "/api/keys", json={"name": "looks", "role": "viewer"})["secret"]
    page = desk.open("/proxies", key)
    expect(page.get_by_role("row").filter(has_text="office")).to_be_visible()
    assert page.get_by_role("button", name="Add a pool").count() == 0
    go(page, "/dead-letters")
    assert page.get_by_role("button", name="Run again").count() == 0
    assert page.locator('nav.menu a[href="/keys"], nav.menu a[href="/audit"]').count() == 0
    page.context.close()


def test_a_key_is_made_rotated_and_revoked(desk: Desk) -> None:
    page = desk.at("/keys")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("Scrapers", exact=True).fill("shop/* demo/*")
    page.get_by_label("It works for").select_option("90")
    page.locator("dialog button[type=submit]").click()
    secret = page.input_value("dialog input.mono")
    answer = httpx.get(f"{desk.yard.urls[0]}/api/identity", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["scrapers"] == ["shop/*", "demo/*"]
    page.get_by_role("button", name="I have copied it").click()
    page.get_by_role("row").filter(has_text="nightly").get_by_role("link").click()
    page.get_by_role("button", name="Rotate key").click()
    page.get_by_label("The old key works on for").select_option("0")
    page.locator("dialog footer button").click()
    newer = page.input_value("dialog input.mono")
    page.get_by_role("button", name="I have copied it").click()
    page.get_by_role("row").filter(has_text="nightly").get_by_role("link").click()
    page.get_by_role("button", name="Revoke key").click()
    page.get_by_role("button", name="Revoke key").click()
    expect(page.get_by_role("row").filter(has_text="nightly")).to_have_count(0)
    for old in (secret, newer):
        refused = httpx.get(f"{desk.yard.urls[0]}/api/identity", headers={"Authorization": f"Bearer {old}"})
        assert refused.status_code == 401


def test_failed_items_are_run_again_by_group(desk: Desk) -> None:
    page = desk.at("/dead-letters")
    group = page.get_by_label("Alike").get_by_role("row").filter(has_text="fetch_connect").first
    group.get_by_role("button", name="Run again").click()
    page.locator("dialog").get_by_role("button", name="Run again").click()
    expect(page.get_by_text("3 items run again")).to_be_visible()


def test_a_site_is_treated_more_gently_and_back(desk: Desk) -> None:
    page = desk.at("/sites")
    page.get_by_role("row").filter(has_text="shop.example").get_by_role("link").click()
    page.get_by_role("button", name="Be gentler").click()
    until(lambda: desk.call("GET", "/api/sites/shop.example")["rules"]["rate"] == 2, "the pace is halved")
    page.get_by_role("button", name="Undo").click()
    until(lambda: desk.call("GET", "/api/sites/shop.example")["rules"]["rate"] == 4, "the pace is as before")
    assert desk.call("GET", "/api/sites/shop.example")["rules"]["note"] == "their wish"
    go(page, "/audit")
    page.get_by_role("row").filter(has_text="put_site").first.get_by_role("link").click()
    expect(page.locator("dialog tr").filter(has_text="rate").first.locator("del")).to_have_text("2")
    page.get_by_role("button", name="Close").click()


def test_a_worker_drains_and_takes_work_again(desk: Desk) -> None:
    page = desk.at("/workers")
    page.locator(".tbody a").first.click()
    page.get_by_role("button", name="Drain worker").click()
    page.locator("dialog").get_by_role("button", name="Drain worker").click()
    until(lambda: desk.call("GET", "/api/workers")["workers"][0]["draining"], "it drains")
    page.get_by_role("button", name="Undo").click()
    until(lambda: not desk.call("GET", "/api/workers")["workers"][0]["draining"], "it takes work again")


def test_usage_is_downloaded_and_kept_pages_are_forgotten(desk: Desk) -> None:
    page = desk.at("/usage")
    with page.expect_download() as file:
        page.get_by_role("button", name="Download CSV").click()
    assert Path(file.value.path()).read_text().startswith("client,scraper,runs,fetches")
    go(page, "/cache")
    page.get_by_role("button", name="Everything").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.locator("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("pages forgotten")).to_be_visible()
    go(page, "/webhooks")
    page.get_by_role("row").filter(has_text="job.completed").first.get_by_role("link").click()
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("The message is sent again")).to_be_visible()
    assert desk.faults == []
