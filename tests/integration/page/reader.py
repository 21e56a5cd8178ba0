"""A person who reads the page in a real browser, and the work on the server that they see."""

import base64
import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, ViewportSize, expect

from tests.leaks import PATIENCE, until
from tests.programs import Yard

PATIENCE_MS = PATIENCE * 1000
WATCHED = """
async def run(ctx, url: str):
    async with ctx.browser() as page:
        await page.goto(url)
        await page.evaluate("setInterval(() => document.body.append('more '), 50)")
        await page.wait_for_function("false", timeout=600)
"""
CHATTY = """
import asyncio

async def run(ctx, lines: int):
    for number in range(lines):
        print("line", number)
    await asyncio.sleep(600)
"""
"""Once: whoever opens its log while it sleeps must see them."""
FAILS = "def run(ctx):\n    raise ValueError('the price is gone')\n"
DRIFTS = """
def run(ctx, n: int):
    return {"title": f"Lamp {1000 + n}", "price": 100 + n + 0.5 if n < 100 else None}
"""
"""Loses its price with item 100."""
SCRAPERS = (
    ("watched", "lab/watched", "1.0.0", WATCHED),
    ("chatty", "lab/chatty", "1.0.0", CHATTY),
    ("drifts", "lab/drifts", "1.0.0", DRIFTS),
    ("old", "lab/rolled", "1.0.0", "def run(ctx):\n    return 1\n"),
    ("new", "lab/rolled", "1.1.0", FAILS),
)
MANIFEST = 'id = "{id}"\nversion = "{version}"\n[limits]\nwall_seconds = 600\nlog_kb = 4000\n'
_BREACHES = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (event) => window.breaches.push(event.violatedDirective));
"""
_BLANK = "about:blank"
_GO = """path => new Promise(drawn => {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
  requestAnimationFrame(() => requestAnimationFrame(drawn));
})"""
_FORGET = """kept => {
  sessionStorage.clear();
  localStorage.clear();
  for (const { name, value } of kept) localStorage.setItem(name, value);
}"""


class Reader(NamedTuple):
    """Whose eyes see the page."""

    language: str = "en"
    theme: str = "light"
    width: int = 1440

    def __str__(self) -> str:
        return f"{self.language}-{self.theme}-{self.width}"


FIRST = Reader()


def _screen(width: int) -> ViewportSize:
    return {"width": width, "height": 900}


class Person:
    """Reads the page in one browser context, counts clicks, and notes everything that went wrong."""

    def __init__(self, browser: Browser, origin: str, reader: Reader = FIRST, signed_in: Any = None) -> None:
        expect.set_options(timeout=PATIENCE_MS)
        self.origin = origin
        self.clicks = 0
        self.faults: list[str] = []
        self._kept = [] if signed_in is None else [one for each in signed_in["origins"] for one in each["localStorage"]]
        self.context: BrowserContext = browser.new_context(
            locale=reader.language,
            color_scheme=reader.theme,  # type: ignore[arg-type]
            viewport=_screen(reader.width),
            permissions=["clipboard-read", "clipboard-write"],
            storage_state=signed_in,
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.add_init_script(_BREACHES)
        self.page: Page = self.context.new_page()
        self._tools = self.context.new_cdp_session(self.page)
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
        self._wait_for_view()

    def choose(self, path: str) -> None:
        """Open a view by the menu, as people do."""
        link = self.page.locator(f'nav.menu a[href="{path}"]:not(.health)')
        if not link.is_visible():
            self.page.click("nav.menu button")
        link.click()
        self._wait_for_view()

    def resize(self, width: int) -> None:
        """Make the screen so wide."""
        self.page.set_viewport_size(_screen(width))

    def _wait_for_view(self) -> None:
        expect(self.page.locator("main[aria-busy=true]")).to_have_count(0)
        expect(self.page.locator("main .skeleton")).to_have_count(0)
        expect(self.page.locator("main h1").first).to_be_attached()

    def sign_in(self, key: str) -> None:
        """Give a key where the page asks for one."""
        self.page.fill("input[type=password]", key)
        self.page.press("input[type=password]", "Enter")
        self.page.wait_for_selector("nav.menu")

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name)

    def row(self, text: str) -> Locator:
        return self.page.get_by_role("row").filter(has_text=text)

    def search(self, words: str, found: str) -> None:
        """Type into the search, and wait until the first thing found is this."""
        self.page.keyboard.press("Control+k")
        expect(self.page.locator("dialog.search input")).to_be_focused()
        self.page.keyboard.type(words)
        expect(self.page.locator("dialog.search").get_by_role("option").first).to_contain_text(found)

    def tab_to(self, target: Locator, most: int = 60) -> None:
        """Press Tab until the focus is there."""
        for _ in range(most):
            if target.evaluate("one => one === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{target} is not reached by {most} times Tab")

    def heap_bytes(self) -> int:
        """What the page holds, without what it has let go."""
        self._tools.send("HeapProfiler.collectGarbage")
        return int(self._tools.send("Runtime.getHeapUsage")["usedSize"])

    def keep_picture(self, view: str, reader: Reader) -> None:
        """Where `PAGE_PICTURES` names a folder. The way of Playwright takes twice as long."""
        if folder := os.environ.get("PAGE_PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "-", re.sub(r"\{\w+\}", "one", view)).strip("-")
            taken = self._tools.send("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True})
            (Path(folder) / f"{name}-{reader}.png").write_bytes(base64.b64decode(taken["data"]))

    def leave(self) -> None:
        """Let the next find what a new tab has, but for files in the cache. Fails when something went wrong."""
        self.context.set_offline(False)
        breaches: list[str] = []
        if self.page.evaluate("location.href") != _BLANK:  # what the driver says may be a moment old
            breaches = self.page.evaluate("window.breaches")
            self.page.evaluate(_FORGET, self._kept)
            self.page.goto(_BLANK)
        told, self.faults, self.clicks = [*self.faults, *breaches], [], 0
        assert not told, f"the browser told: {told}"

    def close(self) -> None:
        breaches = self.page.evaluate("window.breaches")
        self.context.close()
        told = [*self.faults, *breaches]
        assert not told, f"the browser told: {told}"


def write_scrapers(yard: Yard) -> None:
    """One whose browser can be watched, and one whose newest version fails."""
    for name, id_, version, script in SCRAPERS:
        folder = yard.scrapers / "page" / name
        folder.mkdir(parents=True)
        (folder / "scraper.py").write_text(script)
        (folder / "scraper.toml").write_text(MANIFEST.format(id=id_, version=version))


def do_some_work(yard: Yard, api: httpx.Client) -> dict[str, str]:
    """What the views show: runs that went well and badly, a correction, jobs, one of which loses a field, a schedule,
    a site with rules, a pool, a message that nobody takes, an item that failed for good."""
    shop = yard.shop.url
    _call(api, "POST", "/api/scrapers/refresh")
    good = _call(api, "POST", "/api/scrape", {"url": f"{shop}/product/1", "formats": ["markdown", "html", "product"]})
    make_job(api, scraper="lab/drifts", items=[{"n": n} for n in range(100)])
    # A job of its own: the items of one job end in no fixed order, and only the last pages tell of a drift.
    make_job(api, scraper="lab/drifts", items=[{"n": n} for n in range(100, 130)])
    bad = api.post("/api/scrape", json={"scraper": "lab/rolled", "policy": {"retries": 0}}).json()
    snapshots = {"exports": [{"type": "diff", "format": "json"}], "policy": {"snapshots": {"scope": "page"}}}
    for products in ((1, 2), (2, 3)):
        crawl = make_job(api, name="prices", items=[f"{shop}/product/{n}" for n in products], **snapshots)
    statuses = [f"{shop}/status/{code}" for code in ("403?n=1", "403?n=2", "500")]
    mixed = make_job(
        api,
        name="mixed",
        items=[f"{shop}/product/1", *statuses],
        policy={"retries": 0, "escalate": False},
        webhook={"url": "http://127.0.0.1:9/told", "secret": "a-secret-of-sixteen"},
    )
    morning = {"name": "morning", "cron": "0 9 * * *", "scrape": {"url": f"{shop}/product/1"}}
    schedule = _call(api, "POST", "/api/schedule", morning)
    _call(api, "PUT", "/api/sites/shop.example", {"rate": 4, "note": "their wish"})
    _call(api, "PUT", "/api/proxies/office", {"urls": ["http://user:word@127.0.0.1:3128"]})
    until(lambda: _call(api, "GET", "/api/webhooks/deliveries")["deliveries"], "a message is written")
    lamp, values = {"url": f"{shop}/product/1"}, {"material": "ceramic"}
    wanted = {**lamp, "fields": "title, material", "examples": [{**lamp, "values": values}]}
    taught = _call(api, "POST", "/api/extract", wanted)
    made = {"good": good, "bad": bad, "schedule": schedule, "taught": taught}
    return {"shop": shop, "crawl": crawl, "mixed": mixed} | {name: one["id"] for name, one in made.items()}


def _call(api: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    answer = api.request(method, path, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


def make_job(api: httpx.Client, **call: Any) -> str:
    """A job that has ended, unless it is to begin paused. Its id."""
    job_id: str = _call(api, "POST", "/api/jobs", {"scraper": "builtin/page", **call})["id"]
    if not call.get("paused"):
        until(lambda: has_ended(api, job_id), f"{job_id} has ended")
    return job_id


def has_ended(api: httpx.Client, job_id: str) -> bool:
    job = _call(api, "GET", f"/api/jobs/{job_id}")
    return job["status"] == "completed" and not job["files_pending"]
