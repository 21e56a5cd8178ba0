"""The page in a real browser, against a real server with real jobs.

Every view in both languages and themes on a large and a small screen: no violation of accessibility, no error in the
console, no breach of the Content-Security-Policy, no request to another origin. And ten tasks of a person, with their
clicks counted. `PAGE_PICTURES=folder` keeps a picture of every view.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Response,
    expect,
    sync_playwright,
)

from scrapeyard.engines.browser.found import find_browser
from scrapeyard.gateway.page import BUILT, INDEX
from scrapeyard.settings import BrowserSettings
from tests.leaks import PATIENCE, until
from tests.programs import ROOT, Embedded, Yard

_FOUND = find_browser(BrowserSettings())
_AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(_FOUND.missing), reason=f"it needs a browser: {_FOUND.missing}"),
    pytest.mark.skipif(not (BUILT / INDEX).exists() or not _AXE.exists(), reason="the page is not built: make page"),
]
PATIENCE_MS = PATIENCE * 1000
MOST_CLICKS = 4
MOST_SCRIPT = 250_000
"""Bytes of compressed JavaScript for the first view."""
WATCHED = """
async def run(ctx, url: str):
    async with ctx.browser() as page:
        await page.goto(url)
        await page.evaluate("setInterval(() => document.body.append('more '), 50)")
        await page.wait_for_function("false", timeout=600)
"""
MANIFEST = 'id = "{id}"\nversion = "{version}"\n[limits]\nwall_seconds = 600\n'
VIEWS = [
    *("/try", "/try?url={shop}/product/1&run={good}", "/runs", "/runs?status=failed", "/runs/{good}", "/runs/{bad}"),
    *(
        "/jobs",
        "/jobs/new",
        "/jobs/new?kind=paste",
        "/jobs/new?kind=file",
        "/jobs/{mixed}",
        "/jobs/{mixed}?tab=exports",
    ),
    *("/data", "/data/{crawl}", "/data/{crawl}/changes", "/schedules", "/schedules/new", "/schedules/{schedule}"),
    *("/scrapers", "/scrapers/lab/rolled", "/sites", "/sites/127.0.0.1", "/system", "/workers", "/dead-letters"),
    *("/webhooks", "/proxies", "/cache", "/usage", "/keys", "/audit", "/nowhere"),
]
READERS = [("en", "light", 1440), ("ko", "dark", 1440), ("en", "light", 390), ("ko", "dark", 390)]
"""Both languages and both themes on each screen."""
CHECKED = (READERS[0], READERS[-1])
"""Those for whom axe looks at each view: colours depend on the theme, and what is shown on the screen."""
_BREACHES = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (event) => window.breaches.push(event.violatedDirective));
"""
_GO = """path => new Promise(drawn => {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
  requestAnimationFrame(() => requestAnimationFrame(drawn));
})"""
_RULES = "{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'], resultTypes: ['violations'] }"
_CHECK = f"axe.run(document, {_RULES}).then(found => found.violations.map(one => one.id + ': ' + one.nodes[0].html))"


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Yard]:
    with Embedded({"SCRAPEYARD_BROWSER__MAX_CONTEXTS": "2"}) as yard:
        for name, id_, version, script in (
            ("watched", "lab/watched", "1.0.0", WATCHED),
            ("old", "lab/rolled", "1.0.0", "def run(ctx):\n    return 1\n"),
            ("new", "lab/rolled", "1.1.0", "def run(ctx):\n    raise ValueError('the price is gone')\n"),
        ):
            folder = yard.scrapers / "page" / name
            folder.mkdir(parents=True)
            (folder / "scraper.py").write_text(script)
            (folder / "scraper.toml").write_text(MANIFEST.format(id=id_, version=version))
        yield yard


@pytest.fixture(scope="module")
def api(yard: Yard) -> Iterator[httpx.Client]:
    with yard.client() as client:
        yield client


@pytest.fixture(scope="module")
def made(yard: Yard, api: httpx.Client) -> dict[str, str]:
    """What the views show: runs that went well and badly, jobs, a schedule."""
    shop = yard.shop.url
    api.post("/api/scrapers/refresh").raise_for_status()
    good = api.post("/api/scrape", json={"url": f"{shop}/product/1", "formats": ["markdown", "html", "product"]}).json()
    bad = api.post("/api/scrape", json={"scraper": "lab/rolled", "policy": {"retries": 0}}).json()
    snapshots = {"exports": [{"type": "diff", "format": "json"}], "policy": {"snapshots": {"scope": "page"}}}
    for products in ((1, 2), (2, 3)):
        crawl = _job(api, name="prices", items=[f"{shop}/product/{n}" for n in products], **snapshots)
    statuses = [f"{shop}/status/{code}" for code in ("403?n=1", "403?n=2", "500")]
    mixed = _job(api, name="mixed", items=[f"{shop}/product/1", *statuses], policy={"retries": 0, "escalate": False})
    schedule = api.post(
        "/api/schedule", json={"name": "morning", "cron": "0 9 * * *", "scrape": {"url": f"{shop}/product/1"}}
    ).json()
    return {
        "shop": shop,
        "good": good["id"],
        "bad": bad["id"],
        "crawl": crawl,
        "mixed": mixed,
        "schedule": schedule["id"],
    }


def _job(api: httpx.Client, **call: Any) -> str:
    answer = api.post("/api/jobs", json={"scraper": "builtin/page", **call})
    assert answer.status_code == 201, answer.text
    job_id: str = answer.json()["id"]
    if not call.get("paused"):
        until(lambda: _ended(api, job_id), f"{job_id} has ended")
    return job_id


def _ended(api: httpx.Client, job_id: str) -> bool:
    job = api.get(f"/api/jobs/{job_id}").json()
    return job["status"] == "completed" and not job["files_pending"]


@pytest.fixture(scope="module")
def browser(nothing_left: None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_FOUND.executable or None, args=["--no-sandbox"])
        yield browser
        browser.close()


class Person:
    """Reads the page in one browser context, counts clicks, and notes everything that went wrong."""

    def __init__(self, browser: Browser, origin: str, reader: tuple[str, str, int]) -> None:
        language, theme, width = reader
        self.origin = origin
        self.clicks = 0
        self.faults: list[str] = []
        self.context: BrowserContext = browser.new_context(
            locale=language,
            color_scheme=theme,  # type: ignore[arg-type]
            viewport={"width": width, "height": 900},
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.add_init_script(_BREACHES)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "response", lambda got: self.faults.append(f"{got.status} {got.url}") if got.status >= 400 else None
        )
        self.page.on("request", lambda asked: self._origin(asked.url))

    def _listen(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.faults.append(said.text)

    def _origin(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https") and not url.startswith(self.origin):
            self.faults.append(f"asked elsewhere: {url}")

    def open(self, path: str) -> Page:
        """Load the page at a path. What comes after counts as clicks."""
        self.page.goto(self.origin + path)
        self.clicks = 0
        return self.page

    def go(self, path: str) -> None:
        """Open a view without loading the page again, and wait until it shows what it asked for."""
        self.page.evaluate(_GO, path)
        expect(self.page.locator("main[aria-busy=true]")).to_have_count(0)
        expect(self.page.locator("main .skeleton")).to_have_count(0)
        expect(self.page.locator("main h1").first).to_be_attached()

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name)

    def close(self) -> None:
        breaches = self.page.evaluate("window.breaches")
        self.context.close()
        assert (self.faults, breaches) == ([], [])


@pytest.fixture
def person(browser: Browser, yard: Yard, made: dict[str, str]) -> Iterator[Person]:
    expect.set_options(timeout=PATIENCE_MS)
    person = Person(browser, yard.urls[0], READERS[0])
    yield person
    person.close()
    assert person.clicks <= MOST_CLICKS


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: "-".join(map(str, reader)))
def test_every_view_is_accessible_and_clean(
    browser: Browser, yard: Yard, made: dict[str, str], reader: tuple[str, str, int]
) -> None:
    expect.set_options(timeout=PATIENCE_MS)
    person = Person(browser, yard.urls[0], reader)
    page, violations = person.open("/try"), []
    page.evaluate(_AXE.read_text("utf-8"))
    for view in VIEWS:
        person.go(view.format_map(made))
        if reader in CHECKED:
            violations += [f"{view} {one}" for one in page.evaluate(_CHECK)]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{view} scrolls sideways"
        _keep_picture(page, view, reader)
    assert not violations, "\n".join(violations)
    assert page.locator("html").get_attribute("lang") == reader[0]
    person.close()


def _keep_picture(page: Page, view: str, reader: tuple[str, str, int]) -> None:
    if folder := os.environ.get("PAGE_PICTURES"):
        name = re.sub(r"\W+", "-", re.sub(r"\{\w+\}", "one", view)).strip("-")
        page.screenshot(path=Path(folder) / f"{name}-{'-'.join(map(str, reader))}.png")


def test_the_first_view_loads_little(person: Person) -> None:
    sizes: list[int] = []
    person.page.on("response", lambda got: sizes.append(_script_bytes(got)))
    expect(person.open("/try").get_by_role("textbox").first).to_be_visible()
    assert 0 < sum(sizes) <= MOST_SCRIPT


def _script_bytes(got: Response) -> int:
    return int(got.headers["content-length"]) if urlsplit(got.url).path.endswith(".js") else 0


def test_a_lost_connection_is_shown_and_heals(person: Person) -> None:
    page = person.open("/jobs")
    expect(page.get_by_role("table")).to_be_visible()
    person.context.set_offline(True)
    expect(page.get_by_role("alert").first).to_contain_text("does not answer")
    person.context.set_offline(False)
    expect(page.get_by_text("does not answer")).to_have_count(0)
    person.faults.clear()  # the browser tells of every call that it could not make


def test_any_of_many_items_is_a_scroll_away(person: Person, api: httpx.Client) -> None:
    rows = 20_000
    job_id = _job(api, scraper="builtin/echo", name="long", paused=True, items=[{"n": n} for n in range(rows)])
    page = person.open(f"/jobs/{job_id}")
    table = page.get_by_role("table", name="Items")
    expect(table).to_have_attribute("aria-rowcount", str(rows + 1))
    table.locator(".tbody").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(table.get_by_text(f"n: {rows - 1}", exact=True)).to_be_visible()
    assert table.get_by_role("row").count() < 100


def test_search_leads_to_a_scraper_by_keyboard_alone(person: Person) -> None:
    page = person.open("/runs")
    expect(page.get_by_role("table")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("lab/rolled")
    expect(page.get_by_role("option", name="lab/rolled").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="lab/rolled")).to_be_visible()


def test_csv_of_a_site_from_its_sitemap(person: Person, made: dict[str, str]) -> None:
    page = person.open("/jobs/new?kind=sitemap")
    page.get_by_label("Sitemap, robots.txt or site").fill(f"{made['shop']}/sitemap.xml")
    page.get_by_label("Pages at most").fill("5")
    person.click(person.button("Start job"))
    person.click(page.get_by_role("tab", name="Exports"))
    with page.expect_download() as download:
        person.click(page.get_by_role("link", name="Download"))
    assert len(Path(download.value.path()).read_text("utf-8-sig").splitlines()) == 6


def test_see_why_a_run_failed(person: Person) -> None:
    page = person.open("/runs")
    person.click(person.button("failed"))
    person.click(page.get_by_role("link", name="lab/rolled@1.1.0").first)
    expect(page.get_by_role("alert").first).to_contain_text("the price is gone")
    expect(page.get_by_role("tab", name="Explain")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("It ended as script_error")).to_be_visible()


def test_roll_back_a_scraper(person: Person, api: httpx.Client) -> None:
    page = person.open("/scrapers")
    person.click(page.get_by_role("link", name="lab/rolled"))
    person.click(person.button("Point stable to 1.0.0"))
    person.click(page.get_by_role("dialog").get_by_role("button", name="Point stable to 1.0.0"))
    expect(page.get_by_text("stable is now 1.0.0")).to_be_visible()
    assert api.post("/api/scrape", json={"scraper": "lab/rolled"}).json()["result"] == 1


def test_run_only_the_403s_again(person: Person, api: httpx.Client, made: dict[str, str]) -> None:
    def ends() -> dict[int, str]:
        items = api.get(f"/api/jobs/{made['mixed']}/items").json()["items"]
        return {item["number"]: item["finished_at"] for item in items}

    before = ends()
    page = person.open(f"/jobs/{made['mixed']}")
    person.click(page.get_by_role("button", name=re.compile(r"Run 2 items again \(403")))
    person.click(page.get_by_role("dialog").get_by_role("button", name="Run again"))
    expect(page.get_by_text("2 items run again")).to_be_visible()
    until(lambda: _ended(api, made["mixed"]), "the two have run again")
    after = ends()
    assert [number for number in after if after[number] != before[number]] == [1, 2]


def test_change_the_rate_of_a_job(person: Person, api: httpx.Client) -> None:
    job_id = _job(api, scraper="builtin/echo", paused=True, items=[{"n": 1}], policy={"rate": 20})
    page = person.open(f"/jobs/{job_id}")
    person.click(person.button("Rate 20/s"))
    page.get_by_label("Items begun a second").fill("5")
    person.click(person.button("Change"))
    expect(person.button("Rate 5/s")).to_be_visible()
    assert api.get(f"/api/jobs/{job_id}").json()["policy"]["rate"] == 5


def test_find_what_changed(person: Person, made: dict[str, str]) -> None:
    page = person.open("/data")
    row = page.get_by_role("row", name=re.compile("prices")).first
    person.click(row.get_by_role("link", name="What changed"))
    person.click(person.button("added 1"))
    person.click(page.get_by_role("link", name="/product/3"))
    expect(page.get_by_role("row", name=re.compile("title"))).to_contain_text("Practice Shop")


def test_pause_a_schedule(person: Person, api: httpx.Client, made: dict[str, str]) -> None:
    page = person.open("/schedules")
    person.click(page.get_by_role("table").get_by_role("link", name="morning"))
    person.click(person.button("Pause schedule"))
    expect(person.button("Resume schedule")).to_be_visible()
    assert api.get(f"/api/schedule/{made['schedule']}").json()["paused"]
    page.get_by_role("button", name="Undo").click()
    expect(person.button("Pause schedule")).to_be_visible()


def test_copy_a_call_as_python(person: Person, made: dict[str, str]) -> None:
    page = person.open("/try")
    page.get_by_label("Address of a page").fill(f"{made['shop']}/product/2")
    person.click(person.button(re.compile("^Run")))
    person.click(person.button("Python"))
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f'client.scrape("{made["shop"]}/product/2"' in copied
    expect(page.get_by_text("succeeded").first).to_be_visible()


def test_see_a_browser_live(person: Person, api: httpx.Client, made: dict[str, str]) -> None:
    call = {"scraper": "lab/watched", "input": {"url": made["shop"]}, "wait": False, "policy": {"retries": 0}}
    run_id = api.post("/api/scrape", json=call).json()["id"]
    try:
        page = person.open("/runs?status=running")
        person.click(page.get_by_role("link", name="lab/watched"))
        person.click(page.get_by_role("tab", name="Browser, live"))
        expect(page.get_by_alt_text("What the run's browser shows now.")).to_be_visible()
    finally:
        api.delete(f"/api/scrape/{run_id}").raise_for_status()


def test_make_a_key(person: Person, api: httpx.Client) -> None:
    """The last test: from the first key on, the server asks everybody for one."""
    page = person.open("/keys")
    person.click(person.button("Make a key"))
    page.get_by_label("Name").fill("boss")
    person.click(page.get_by_role("dialog").get_by_role("button", name="Make a key"))
    secret = page.get_by_role("textbox", name="Secret").input_value()
    api.headers["Authorization"] = f"Bearer {secret}"
    assert api.get("/api/identity").json()["role"] == "admin"
    person.faults.clear()  # calls that were under way when the server closed are answered with 401
