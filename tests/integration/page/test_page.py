"""The page in a real browser, against a real server with real jobs.

Every view in both languages and themes on a large and a small screen: no violation of accessibility, no error in the
console, no breach of the Content-Security-Policy, no request to another origin. Ten tasks of a person, with their
clicks counted. And the buttons of those who run the platform. `PAGE_PICTURES=folder` keeps pictures of every view, as a
large light and a small dark screen show it, with `PAGE_READERS=all` as everybody sees it.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Response, expect, sync_playwright

from scrapeyard.engines.browser.found import find_browser
from scrapeyard.engines.browser.inside.launch import _NO_FEATURES
from scrapeyard.gateway.page import BUILT, INDEX
from scrapeyard.settings import BrowserSettings
from tests.integration.page.reader import Person, Reader, do_some_work, has_ended, make_job, write_scrapers
from tests.leaks import until
from tests.programs import ROOT, Embedded, Yard

_FOUND = find_browser(BrowserSettings())
_AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(_FOUND.missing), reason=f"it needs a browser: {_FOUND.missing}"),
    pytest.mark.skipif(not (BUILT / INDEX).exists() or not _AXE.exists(), reason="the page is not built: make page"),
]
MOST_CLICKS = 4
MOST_SCRIPT = 250_000
"""Bytes of compressed JavaScript for the first view."""
VIEWS = [
    *("/try", "/try?url={shop}/product/1&run={good}", "/runs", "/runs?status=failed", "/runs/{good}", "/runs/{bad}"),
    *("/runs/{taught}", "/try?scraper=builtin/extract"),
    *("/jobs", "/jobs/new", "/jobs/new?kind=paste", "/jobs/new?kind=file"),
    *("/jobs/{mixed}", "/jobs/{mixed}?tab=exports", "/data", "/data/{crawl}", "/data/{crawl}/changes"),
    *("/schedules", "/schedules/new", "/schedules/{schedule}"),
    *("/scrapers", "/scrapers/lab/rolled", "/scrapers/lab/rolled?tab=source&against=1.0.0"),
    "/scrapers/lab/drifts?tab=drift",
    *("/sites", "/sites/127.0.0.1", "/system", "/alerts", "/workers", "/dead-letters", "/webhooks", "/proxies"),
    *("/cache", "/usage", "/keys", "/audit", "/settings", "/nowhere"),
]
READERS = (Reader(), Reader("ko", "dark", 390))
"""Axe looks at each view for both: colours depend on the theme, and what is shown on the screen."""
WIDTHS = (1440, 390)
"""Each reader's screen is also made as wide as the other's."""
_CHECK = """axe.run(document, { resultTypes: ['violations'] })
  .then(found => found.violations.map(one => one.id + ': ' + one.nodes[0].html))"""
_FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sink, which is not there yet."""
    return tmp_path_factory.mktemp("sinks") / "warehouse"


@pytest.fixture(scope="module")
def yard(nothing_left: None, warehouse: Path) -> Iterator[Yard]:
    config = warehouse.parent / "scrapeyard.toml"
    target = f'name = "warehouse"\nurl = "sqlite:///{warehouse}/results.db"\n'
    config.write_text(f"[sinks]\ngive_up_hours = 0\n[[sinks.targets]]\n{target}")
    with Embedded({"SCRAPEYARD_BROWSER__MAX_CONTEXTS": "2", "SCRAPEYARD_CONFIG": str(config)}) as yard:
        write_scrapers(yard)
        yield yard


@pytest.fixture(scope="module")
def browser(nothing_left: None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", f"--disable-features={','.join(_NO_FEATURES)}"]
        browser = playwright.chromium.launch(executable_path=_FOUND.executable or None, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def first_key(browser: Browser, yard: Yard) -> tuple[str, Any]:
    """The first key, made in the page: it ends the time when nobody is asked, and the page signs in with it."""
    person = Person(browser, yard.urls[0])
    page = person.open("/keys?new=1")
    page.fill("dialog input[required]", "admin")
    page.click("dialog button[type=submit]")
    secret = page.input_value("dialog input.mono")
    person.button("I have copied it").click()
    expect(person.row("admin").first).to_be_visible()
    state = person.context.storage_state()
    person.context.close()  # calls that were under way when the server closed are answered with 401
    return secret, state


@pytest.fixture(scope="module")
def api(yard: Yard, first_key: tuple[str, Any]) -> Iterator[httpx.Client]:
    with yard.client() as client:
        client.headers["Authorization"] = f"Bearer {first_key[0]}"
        yield client


@pytest.fixture(scope="module")
def made(yard: Yard, api: httpx.Client) -> dict[str, str]:
    return do_some_work(yard, api)


@pytest.fixture(scope="module")
def admin(browser: Browser, yard: Yard, made: dict[str, str], first_key: tuple[str, Any]) -> Iterator[Person]:
    """One tab for all tests: a new one takes a core longer to start and fill than most tests take."""
    admin = Person(browser, yard.urls[0], signed_in=first_key[1])
    yield admin
    admin.context.close()


@pytest.fixture
def person(admin: Person) -> Iterator[Person]:
    """Begins with what a new tab has."""
    yield admin
    admin.leave()


@pytest.fixture
def worker(person: Person) -> Iterator[Person]:
    """A person with a task, whose clicks are counted."""
    yield person
    assert person.clicks <= MOST_CLICKS


@pytest.mark.parametrize("reader", READERS, ids=str)
def test_every_view_is_accessible_and_clean(
    browser: Browser, yard: Yard, made: dict[str, str], first_key: tuple[str, Any], reader: Reader
) -> None:
    person = Person(browser, yard.urls[0], reader, first_key[1])
    page, violations = person.open("/try"), []
    page.evaluate(_AXE.read_text("utf-8"))
    for view in VIEWS:
        person.go(view.format_map(made))
        violations += [f"{view} {one}" for one in page.evaluate(_CHECK)]
        if "{" not in view and "lab" not in view and "127" not in view:
            assert bool(re.search("[가-힣]", page.inner_text("main h1"))) == (reader.language == "ko"), view
        for width in sorted(WIDTHS, key=reader.width.__ne__):
            person.resize(width)
            until(lambda: page.evaluate(_FITS), f"{view} fits {width}")  # charts follow the screen a moment later
            if width == reader.width or os.environ.get("PAGE_READERS") == "all":
                person.keep_picture(view, reader._replace(width=width))
        person.resize(reader.width)
    assert not violations, "\n".join(violations)
    assert page.locator("html").get_attribute("lang") == reader.language
    person.close()


def test_the_first_view_loads_little(
    browser: Browser, yard: Yard, made: dict[str, str], first_key: tuple[str, Any]
) -> None:
    person, sizes = Person(browser, yard.urls[0], signed_in=first_key[1]), list[int]()
    person.page.on("response", lambda got: sizes.append(_script_bytes(got)))
    expect(person.open("/try").get_by_role("textbox").first).to_be_visible()
    assert 0 < sum(sizes) <= MOST_SCRIPT
    person.close()


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
    job_id = make_job(api, scraper="builtin/echo", name="long", paused=True, items=[{"n": n} for n in range(rows)])
    page = person.open(f"/jobs/{job_id}")
    table = page.get_by_role("table", name="Items")
    expect(table).to_have_attribute("aria-rowcount", str(rows + 1))
    table.locator(".tbody").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(table.get_by_text(f"n: {rows - 1}", exact=True)).to_be_visible()
    assert table.get_by_role("row").count() < 100


def test_a_flood_of_lines_neither_freezes_the_page_nor_fills_its_memory(person: Person, api: httpx.Client) -> None:
    held = []
    for lines in (10_000, 30_000):
        call = {"scraper": "lab/chatty", "input": {"lines": lines}, "wait": 0, "policy": {"retries": 0}}
        run_id = api.post("/api/scrape", json=call).json()["id"]
        try:
            page = person.open(f"/runs/{run_id}?tab=logs")
            expect(page.get_by_text(f"line {lines - 1}", exact=True)).to_be_visible()
            assert page.locator(".logs pre").count() <= 1000
            held.append(person.heap_bytes())
        finally:
            api.delete(f"/api/scrape/{run_id}").raise_for_status()
    assert held[1] - held[0] < 2_000_000


def test_what_a_running_job_used_is_told_while_its_counts_change(
    person: Person, api: httpx.Client, made: dict[str, str]
) -> None:
    items = [f"{made['shop']}/product/{number % 200 + 1}?v={number}" for number in range(3000)]
    job_id = api.post("/api/jobs", json={"items": items, "policy": {"rate": 20}}).json()["id"]
    try:
        page = person.open(f"/jobs/{job_id}")
        expect(page.get_by_text(re.compile(r"· [1-9]\d+ requests"))).to_be_visible()
        assert api.get(f"/api/jobs/{job_id}").json()["status"] == "running"
    finally:
        api.post(f"/api/jobs/{job_id}/cancel").raise_for_status()


def test_search_leads_to_a_scraper_by_keyboard_alone(person: Person) -> None:
    page = person.open("/runs")
    expect(page.get_by_role("table")).to_be_visible()
    person.search("lab/rolled", "lab/rolled")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="lab/rolled")).to_be_visible()


def test_main_views_are_walked_by_keyboard_alone(person: Person, made: dict[str, str]) -> None:
    page, press = person.open("/runs"), person.page.keyboard.press
    expect(page.get_by_role("table")).to_be_visible()
    press("Tab")
    expect(page.get_by_role("link", name="Skip to the view")).to_be_focused()
    press("Enter")
    expect(page.locator("main")).to_be_focused()
    person.search("jobs", "Jobs")
    press("Escape")
    expect(page.locator("dialog")).to_have_count(0)  # a closed one has no role, and is removed a moment later
    person.search("jobs", "Jobs")
    press("ArrowDown")
    press("ArrowUp")
    press("Enter")
    rows = page.get_by_role("table").locator("a.cover")
    expect(rows.nth(1)).to_be_visible()
    person.tab_to(page.get_by_role("table").locator(".tbody"))
    for key, row in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)):
        press(key)
        expect(rows.nth(row)).to_be_focused()
    press("Enter")
    person.tab_to(page.get_by_role("button", name="Delete job"))
    press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Delete this job")
    press("Tab")
    press("Escape")
    expect(page.locator("dialog")).to_have_count(0)  # a closed one has no role, and is removed a moment later
    expect(page.get_by_role("button", name="Delete job")).to_be_focused()
    person.tab_to(page.get_by_role("tab", name="Items"))
    press("ArrowRight")
    expect(page.get_by_role("tab", name="Exports")).to_be_focused()
    expect(page.get_by_role("tab", name="Exports")).to_have_attribute("aria-selected", "true")
    person.search(f"{made['shop']}/product/1", "/product/1")
    press("Enter")
    person.tab_to(page.get_by_label("Address of a page"))
    press("Enter")
    expect(page.get_by_role("tab", name="Data")).to_have_attribute("aria-selected", "true")


def test_csv_of_a_site_from_its_sitemap(worker: Person, made: dict[str, str]) -> None:
    page = worker.open("/jobs/new?kind=sitemap")
    page.get_by_label("Sitemap, robots.txt or site").fill(f"{made['shop']}/sitemap.xml")
    page.get_by_label("Pages at most").fill("5")
    worker.click(worker.button("Start job"))
    worker.click(page.get_by_role("tab", name="Exports"))
    with page.expect_download() as download:
        worker.click(page.get_by_role("link", name="Download"))
    assert len(Path(download.value.path()).read_text("utf-8-sig").splitlines()) == 6


def test_see_why_a_run_failed(worker: Person) -> None:
    page = worker.open("/runs")
    worker.click(worker.button("failed"))
    worker.click(page.get_by_role("link", name="lab/rolled@1.1.0").first)
    expect(page.get_by_role("alert").first).to_contain_text("the price is gone")
    expect(page.get_by_role("tab", name="Explain")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("It ended as script_error")).to_be_visible()


def test_roll_back_a_scraper(worker: Person, api: httpx.Client) -> None:
    page = worker.open("/scrapers")
    worker.click(page.get_by_role("link", name="lab/rolled"))
    worker.click(worker.button("Point stable to 1.0.0"))
    worker.click(page.get_by_role("dialog").get_by_role("button", name="Point stable to 1.0.0"))
    expect(page.get_by_text("stable is now 1.0.0")).to_be_visible()
    assert api.post("/api/scrape", json={"scraper": "lab/rolled"}).json()["result"] == 1
    worker.button("Point stable to 1.1.0").click()
    page.get_by_role("dialog").get_by_role("button", name="Point stable to 1.1.0").click()
    expect(page.get_by_text("stable is now 1.1.0")).to_be_visible()
    worker.button("Undo").last.click()
    expect(worker.button("Point stable to 1.1.0")).to_be_visible()
    assert api.get("/api/scrapers/lab/rolled/channels").json()["channels"]["stable"] == "1.0.0"


def test_run_only_the_403s_again(worker: Person, api: httpx.Client, made: dict[str, str]) -> None:
    def ends() -> dict[int, str]:
        items = api.get(f"/api/jobs/{made['mixed']}/items").json()["items"]
        return {item["number"]: item["finished_at"] for item in items}

    before = ends()
    page = worker.open(f"/jobs/{made['mixed']}")
    worker.click(page.get_by_role("button", name=re.compile(r"Run again: 2 items \(403")))
    worker.click(page.get_by_role("dialog").get_by_role("button", name="Run again"))
    expect(page.get_by_text("2 items run again")).to_be_visible()
    until(lambda: has_ended(api, made["mixed"]), "the two have run again")
    after = ends()
    assert [number for number in after if after[number] != before[number]] == [1, 2]


def test_change_the_rate_of_a_job(worker: Person, api: httpx.Client) -> None:
    job_id = make_job(api, scraper="builtin/echo", paused=True, items=[{"n": 1}], policy={"rate": 20})
    page = worker.open(f"/jobs/{job_id}")
    worker.click(worker.button("Rate 20/s"))
    page.get_by_label("Items begun a second").fill("5")
    worker.click(worker.button("Change"))
    expect(worker.button("Rate 5/s")).to_be_visible()
    assert api.get(f"/api/jobs/{job_id}").json()["policy"]["rate"] == 5


def test_find_what_changed(worker: Person, made: dict[str, str]) -> None:
    page = worker.open("/data")
    row = page.get_by_role("row", name=re.compile("prices")).first
    worker.click(row.get_by_role("link", name="What changed"))
    worker.click(worker.button("added 1"))
    worker.click(page.get_by_role("link", name="/product/3"))
    expect(page.get_by_role("row", name=re.compile("^title "))).to_contain_text("Practice Shop")


def test_pause_a_schedule(worker: Person, api: httpx.Client, made: dict[str, str]) -> None:
    page = worker.open("/schedules")
    worker.click(page.get_by_role("table").get_by_role("link", name="morning"))
    worker.click(worker.button("Pause schedule"))
    expect(worker.button("Resume schedule")).to_be_visible()
    assert api.get(f"/api/schedule/{made['schedule']}").json()["paused"]
    page.get_by_role("button", name="Undo").click()
    expect(worker.button("Pause schedule")).to_be_visible()


def test_copy_a_call_as_python(worker: Person, made: dict[str, str]) -> None:
    page = worker.open("/try")
    page.get_by_label("Address of a page").fill(f"{made['shop']}/product/2")
    worker.click(worker.button(re.compile("^Run")))
    worker.click(worker.button("Python"))
    copied = page.evaluate("navigator.clipboard.readText()")
    assert f'client.scrape("{made["shop"]}/product/2"' in copied
    expect(page.get_by_text("succeeded").first).to_be_visible()


def test_see_a_browser_live(worker: Person, api: httpx.Client, made: dict[str, str]) -> None:
    call = {"scraper": "lab/watched", "input": {"url": made["shop"]}, "wait": False, "policy": {"retries": 0}}
    run_id = api.post("/api/scrape", json=call).json()["id"]
    try:
        page = worker.open("/runs?status=running")
        worker.click(page.get_by_role("link", name="lab/watched"))
        worker.click(page.get_by_role("tab", name="Browser, live"))
        expect(page.get_by_alt_text("What the run's browser shows now.")).to_be_visible()
    finally:
        api.delete(f"/api/scrape/{run_id}").raise_for_status()


def test_make_a_key(worker: Person, api: httpx.Client) -> None:
    page = worker.open("/keys")
    worker.click(worker.button("Make a key"))
    page.get_by_label("Name", exact=True).fill("boss")
    worker.click(page.get_by_role("dialog").get_by_role("button", name="Make a key"))
    secret = page.get_by_role("textbox", name="Secret").input_value()
    assert _identity(worker, secret).json()["client"] == "boss"


def _identity(person: Person, key: str) -> httpx.Response:
    return httpx.get(f"{person.origin}/api/identity", headers={"Authorization": f"Bearer {key}"})


def test_a_viewer_is_offered_nothing_to_change(
    browser: Browser, yard: Yard, made: dict[str, str], api: httpx.Client
) -> None:
    key = api.post("/api/keys", json={"name": "looks", "role": "viewer"}).json()["secret"]
    viewer = Person(browser, yard.urls[0])
    viewer.open("/proxies")
    viewer.sign_in(key)
    expect(viewer.row("office")).to_be_visible()
    assert viewer.button("Add a pool").count() == 0
    viewer.choose("/dead-letters")
    assert viewer.button("Run again").count() == 0
    hidden = ", ".join(f'nav.menu a[href="/{name}"]' for name in ("keys", "audit", "settings"))
    assert viewer.page.locator(hidden).count() == 0
    viewer.close()


def test_a_key_is_made_rotated_and_revoked(person: Person) -> None:
    page = person.open("/keys")
    person.button("Make a key").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    page.get_by_label("Scrapers", exact=True).fill("shop/* demo/*")
    page.get_by_label("It works for").select_option("90")
    page.locator("dialog button[type=submit]").click()
    secret = page.input_value("dialog input.mono")
    assert _identity(person, secret).json()["scrapers"] == ["shop/*", "demo/*"]
    person.button("I have copied it").click()
    person.row("nightly").get_by_role("link").click()
    person.button("Rotate key").click()
    page.get_by_label("The old key works on for").select_option("0")
    page.locator("dialog footer button").click()
    newer = page.input_value("dialog input.mono")
    person.button("I have copied it").click()
    person.row("nightly").get_by_role("link").click()
    person.button("Revoke key").click()
    person.button("Revoke key").click()
    expect(person.row("nightly")).to_have_count(0)
    assert [_identity(person, old).status_code for old in (secret, newer)] == [401, 401]


def test_failed_items_are_run_again_by_group(person: Person, api: httpx.Client) -> None:
    dead = [f"http://127.0.0.1:9/{number}" for number in range(3)]
    make_job(api, items=dead, policy={"retries": 0})
    page = person.open("/dead-letters")
    group = page.get_by_label("Alike").get_by_role("row").filter(has_text="fetch_connect").first
    group.get_by_role("button", name="Run again").click()
    page.locator("dialog").get_by_role("button", name="Run again").click()
    expect(page.get_by_text("3 items run again")).to_be_visible()


def test_a_sink_that_was_given_up_is_delivered_again(person: Person, api: httpx.Client, warehouse: Path) -> None:
    job_id = make_job(api, items=["http://127.0.0.1:9/1"], policy={"retries": 0}, sinks=["warehouse"])
    page = person.open(f"/jobs/{job_id}?tab=sinks")
    row = page.get_by_role("tabpanel").get_by_role("row").filter(has_text="warehouse")
    expect(row).to_contain_text("unable to open database file")
    warehouse.mkdir()
    row.get_by_role("button", name="Deliver again").click()
    expect(row).to_contain_text("done")


def test_a_site_is_treated_more_gently_and_back(person: Person, api: httpx.Client) -> None:
    def rules() -> Any:
        return api.get("/api/sites/shop.example").json()["rules"]

    page = person.open("/sites")
    person.row("shop.example").get_by_role("link").click()
    person.button("Be gentler").click()
    until(lambda: rules()["rate"] == 2, "the pace is halved")
    person.button("Undo").click()
    until(lambda: rules()["rate"] == 4, "the pace is as before")
    assert rules()["note"] == "their wish"
    person.choose("/audit")
    person.row("put_site").first.get_by_role("link").click()
    expect(page.locator("dialog tr").filter(has_text="rate").first.locator("del")).to_have_text("2")
    person.button("Close").click()


def test_a_site_tells_what_it_answered_and_why_items_failed(person: Person) -> None:
    page = person.open("/sites/127.0.0.1")
    expect(page.get_by_role("img", name=re.compile("^What it answered, job by job: .*refused"))).to_be_visible()
    expect(page.get_by_role("link", name="403 fetch_status")).to_be_visible()


def test_a_field_that_empties_is_shown_and_accepted(person: Person, api: httpx.Client) -> None:
    def pages() -> int:
        return sum(site["pages"] for site in api.get("/api/scrapers/lab/drifts/drift").json()["sites"])

    until(lambda: pages() >= 130, "all pages are looked at")
    assert api.get("/api/scrapers/lab/drifts/drift").json()["drifted"] == 1
    page = person.open("/scrapers/lab/drifts")
    page.get_by_role("tab", name="Drift ! 1").click()
    expect(person.row("price")).to_contain_text("emptied")
    expect(person.row("title")).not_to_contain_text("emptied")
    person.button("Accept as normal").click()
    page.get_by_role("dialog").get_by_role("button", name="Accept as normal").click()
    expect(page.get_by_text("Nothing is known of its fields yet")).to_be_visible()
    assert api.get("/api/scrapers/lab/drifts/drift").json()["drifted"] == 0


def test_a_worker_drains_and_takes_work_again(person: Person, api: httpx.Client) -> None:
    def drains() -> bool:
        return bool(api.get("/api/workers").json()["workers"][0]["draining"])

    page = person.open("/workers")
    page.locator(".tbody a").first.click()
    person.button("Drain worker").click()
    page.locator("dialog").get_by_role("button", name="Drain worker").click()
    until(drains, "it drains")
    person.button("Undo").click()
    until(lambda: not drains(), "it takes work again")


def test_usage_is_downloaded_and_kept_pages_are_forgotten(person: Person) -> None:
    page = person.open("/usage")
    with page.expect_download() as file:
        person.button("Download CSV").click()
    assert Path(file.value.path()).read_text().startswith("client,scraper,runs,fetches")
    person.choose("/cache")
    person.button("Everything").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.locator("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_text("pages forgotten")).to_be_visible()
    person.choose("/webhooks")
    person.row("job.completed").first.get_by_role("link").click()
    person.button("Send again").click()
    expect(page.get_by_text("The message is sent again")).to_be_visible()


def test_settings_and_the_source_of_a_version_are_read(person: Person) -> None:
    page = person.open("/settings?show=set")
    slots = page.get_by_label("worker", exact=True).locator("dl > div").filter(has_text="slots")
    expect(slots).to_contain_text("environment SCRAPEYARD_WORKER__SLOTS")
    master = page.get_by_label("secrets", exact=True)
    expect(master).to_contain_text("**********")
    person.go("/scrapers/lab/rolled?tab=source&version=1.1.0&against=1.0.0")
    expect(page.locator(".code .in")).to_contain_text("the price is gone")
    expect(page.locator(".code .out")).to_contain_text("return 1")


def test_a_page_is_previewed_in_its_styles_without_a_request_to_its_site(person: Person, made: dict[str, str]) -> None:
    page = person.open(f"/try?url={made['shop']}/product/1")
    person.button(re.compile("^Run ")).click()
    page.get_by_role("tab", name="Headers").click()
    expect(page.get_by_role("row", name="content-type")).to_contain_text("text/html")
    page.get_by_role("tab", name="Data").click()
    page.get_by_text("LIG-0001").first.hover()
    person.button("show on page: sku").click()
    frame = page.frame_locator("iframe.preview")
    expect(frame.locator("mark")).to_have_text("LIG-0001")
    person.button("Load 1 style sheets").click()
    expect(frame.locator(".gallery, .product").first).to_have_css("display", "grid")
    assert frame.locator("script, link, [onclick], [src^=http]").count() == 0
    person.button("Make a scraper").click()
    made_by = page.get_by_role("dialog").locator("pre").first
    expect(made_by).to_have_text(f"scrapeyard new shop/product --url '{made['shop']}/product/1' --allow-private")
    expect(page.get_by_role("dialog")).to_contain_text("title, price, currency")


def test_corrected_values_teach_the_pattern_of_a_site(person: Person, api: httpx.Client, made: dict[str, str]) -> None:
    page, press = person.open("/try"), person.page.keyboard.press
    page.get_by_label("Scraper").select_option(label="Data to fields")
    for number, told in ((1, "correct another page"), (2, "Learned. Version 1")):
        page.get_by_label("Address of a page").fill(f"{made['shop']}/product/{number}")
        page.get_by_label("Fields").fill("price: number, article")
        press("Enter")
        fields = page.get_by_role("region", name="Fields")
        expect(fields).to_contain_text(re.compile(r"9\d % sure.*structured data.*It stands as.*\$\.offers\.price"))
        expect(fields).to_contain_text("not found")
        person.tab_to(person.button("Correct article"))
        press("Enter")
        expect(page.get_by_label("What the page has as article")).to_be_focused()
        press("Escape")
        expect(person.button("Correct article")).to_be_focused()
        press("Enter")
        expect(page.get_by_label("What the page has as article")).to_be_focused()
        page.keyboard.type(f"LIG-000{number}")
        press("Enter")
        expect(fields.get_by_role("status")).to_contain_text(told)
        expect(fields.get_by_role("status")).to_be_focused()
        expect(fields).to_contain_text(f"You said: LIG-000{number}")
    expect(fields).to_contain_text(re.compile("LIG-0002.*learned pattern.*//dd"))
    page.evaluate(_AXE.read_text("utf-8"))
    person.button("Correct price").click()
    assert page.evaluate(_CHECK) == []
    page.get_by_label("The page is without it").check()
    person.button("Teach").click()
    expect(fields.get_by_role("status")).to_contain_text("does not read it like this: price")
    expect(fields).to_contain_text("You said: LIG-0002")
    page.get_by_role("link", name="Run over many").click()
    page.get_by_label("Pages at most").fill("1")
    person.button("Start job").click()
    page.wait_for_url("**/jobs/job_*")
    job_id = page.url.rpartition("/")[2]
    until(lambda: has_ended(api, job_id), "the job has ended")
    (item,) = api.get(f"/api/jobs/{job_id}/items").json()["items"]
    assert item["input"]["fields"] == "price: number, article"
    assert item["result"]["data"]["article"] == "LIG-0002"


def test_a_crawl_is_compared_field_by_field_and_searched(
    person: Person, api: httpx.Client, made: dict[str, str]
) -> None:
    shop = made["shop"]
    call = {"name": "twice", "exports": [{"type": "diff", "format": "json"}], "policy": {"snapshots": {}}}
    for address in (f"{shop}/product/4", f"{shop}/product/5"):
        job_id = make_job(api, items=[{"item_id": "one", "url": address}], **call)
    page = person.open(f"/data/{job_id}/changes?page={shop}/product/5")
    row = page.get_by_role("row", name=re.compile(r"^product\.sku "))
    expect(row.locator("del")).not_to_be_empty()
    expect(row.locator("mark")).not_to_be_empty()
    page.get_by_role("button", name="product.price").click()
    expect(page.get_by_label("Over the crawls: product.price").get_by_role("listitem")).to_have_count(2)
    person.go(f"/data/{made['crawl']}?q=NORTHWIND")
    expect(page.get_by_text("1 found in 2 of 2 items")).to_be_visible()
    person.go(f"/data/{made['crawl']}")
    page.get_by_text("Filter by value").click()
    page.get_by_label("Column to filter by").select_option("product.sku")
    page.get_by_role("group").get_by_role("button").filter(has_text="LIG-0002").click()
    expect(page.get_by_text("1 found in 2 of 2 items")).to_be_visible()
    expect(page.get_by_role("table", name="Records").get_by_text("LIG-0002")).to_be_visible()
    person.button("product.sku = LIG-0002").click()
    page.get_by_text("Columns 7").click()
    page.get_by_role("button", name=re.compile("stays.*product.price")).click()
    expect(page.get_by_role("columnheader").first).to_contain_text("product.price")


def test_a_job_is_made_in_three_steps(person: Person, api: httpx.Client, made: dict[str, str]) -> None:
    page = person.open(f"/jobs/new?kind=sitemap&start={made['shop']}/sitemap.xml")
    page.get_by_label("Only these").fill("/product/1*")
    person.button("Count and try a page").click()
    expect(page.get_by_text(re.compile(r"^About \d+ pages, .*KB"))).to_be_visible()
    person.button("Next").click()
    page.get_by_label("Items a second").fill("100")
    expect(page.get_by_text(re.compile(r"^About \d+ pages, at 100/s: .* s, about .* KB"))).to_be_visible()
    person.button("Next").click()
    page.get_by_label("Name").fill("steps")
    page.get_by_label("Repeat it").select_option("weekly")
    page.get_by_label("Tell this address").fill("http://127.0.0.1:9/steps")
    assert len(page.get_by_label("Secret of the webhook").input_value()) == 32
    person.button("Start job").click()
    expect(page.get_by_role("heading", name="steps")).to_be_visible()
    (schedule,) = [one for one in api.get("/api/schedule").json()["schedules"] if one["name"] == "steps"]
    assert schedule["cron"] == "0 9 * * 1"
    api.delete(f"/api/schedule/{schedule['id']}").raise_for_status()
