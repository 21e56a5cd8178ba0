"""Pages in a browser, from the call to what is left of them, through the real programs."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from scrapeyard.engines.browser.found import find_browser
from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.engines.solver.flaresolverr import FlareSolverr
from scrapeyard.settings import BrowserSettings, EscalationSettings, HttpSettings
from tests.job_calls import FINAL, Jobs
from tests.leaks import PATIENCE, descendants, living, until
from tests.programs import Embedded, Yard
from tests.services.scripted_site import ScriptedSite

_MISSING = find_browser(BrowserSettings()).missing
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(_MISSING), reason=f"it needs a browser: {_MISSING}"),
]
ITEMS = 300 if os.environ.get("CHAOS_LONG") else 5
"""More than there are contexts."""
SETTINGS = {"SCRAPEYARD_BROWSER__MAX_CONTEXTS": "2", "SCRAPEYARD_BROWSER__WAIT_SECONDS": str(PATIENCE)}
WATCHED = """
async def run(ctx, url: str):
    async with ctx.browser() as page:
        await page.goto(url)
        await page.evaluate("setInterval(() => document.body.append('more '), 50)")
        await page.wait_for_function("false", timeout=600)
"""


@pytest.fixture(scope="module")
def site() -> Iterator[ScriptedSite]:
    with ScriptedSite() as running:
        yield running


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Yard]:
    with Embedded(SETTINGS) as yard:
        yard.add_scraper("watched", WATCHED, "[limits]\nwall_seconds = 600\n")
        yield yard
        assert not list(yard.errors())


@pytest.fixture
def api(yard: Yard) -> Iterator[httpx.Client]:
    with yard.client() as api:
        yield api


def scrape(api: httpx.Client, **call: Any) -> dict[str, Any]:
    answer = api.post("/api/scrape", json=call)
    assert answer.status_code == 200, answer.text
    run: dict[str, Any] = answer.json()
    return run


def test_a_page_that_scripts_fill_by_one_call(api: httpx.Client, site: ScriptedSite) -> None:
    wish = {"wait_for": "li.item", "screenshot": True, "block": ["image"]}
    given = {"url": site.url + "shell", "formats": ["text"], "browser": wish}
    run = scrape(api, scraper="builtin/page", input=given)
    assert "thing 29 for 29 euros" in run["result"]["text"]
    assert run["usage"]["browser_pages"] == 1
    (picture,) = run["artifacts"]
    assert picture["name"] == "screenshot.png"
    assert api.get(picture["href"]).content.startswith(b"\x89PNG")
    explained = api.get(run["links"]["explain"]).json()
    assert "browser" in json.dumps(explained)


def test_a_list_that_grows_while_one_scrolls_is_read_whole(api: httpx.Client, site: ScriptedSite) -> None:
    asked = {"url": f"{site.url}endless", "browser": {"scroll": 20}}
    found = scrape(api, scraper="builtin/list", input=asked, wait=PATIENCE)["result"]
    assert [record["url"] for record in found["records"]] == [f"{site.url}p/{n}" for n in range(1, 21)]
    assert {record["price"] for record in found["records"]} == {n + 0.5 for n in range(1, 21)}


def test_a_list_that_a_button_makes_longer_is_read_whole(api: httpx.Client, site: ScriptedSite) -> None:
    asked = {"url": f"{site.url}growing", "more": "auto"}
    found = scrape(api, scraper="builtin/list", input=asked, wait=PATIENCE)["result"]
    assert [record["url"] for record in found["records"]] == [f"{site.url}p/{n}" for n in range(1, 21)]
    assert [page["records"] for page in found["pages"]] == [5, 5, 5, 5]
    assert (found["stopped"], found["complete"], found["warnings"]) == ("button_gone", True, [])
    few = scrape(api, scraper="builtin/list", input={**asked, "more": "#more", "pages": 2}, wait=PATIENCE)["result"]
    assert [record["url"] for record in few["records"]] == [f"{site.url}p/{n}" for n in range(1, 11)]
    assert (few["stopped"], few["complete"]) == ("pages", False)
    assert "the list goes on" in few["warnings"][0]
    assert {"/sent", "/opened", "/footer"}.isdisjoint(site.asked)


def test_explain_tells_why_a_browser_was_used(api: httpx.Client, site: ScriptedSite) -> None:
    run = scrape(api, url=site.url + "shell")
    assert "thing 29" in json.dumps(run["result"])
    explained = json.dumps(api.get(run["links"]["explain"]).json())
    assert "the page is empty until its scripts run" in explained


async def test_a_client_of_flaresolverr_at_our_door(yard: Yard, site: ScriptedSite) -> None:
    escalation = EscalationSettings(solver_url=yard.urls[0], solver_seconds=PATIENCE)
    solver = FlareSolverr(escalation, dns=GuardedDns(HttpSettings(allow_private=True)), max_bytes=1_000_000)
    await solver.start()
    try:
        request = FetchRequest(url=f"{site.url}challenge")
        solved = await solver.solve(request, Caller(), proxy=None, seconds=PATIENCE)
        assert await solver.healthy()
    finally:
        await solver.stop()
    assert (solved.response.status, b"behind the check" in solved.response.body) == (200, True)
    assert solved.clearance
    assert [(each.name, each.value) for each in solved.clearance.cookies] == [("passed", "1764")]


def test_documents_that_are_no_pages_come_through_the_doors(api: httpx.Client, site: ScriptedSite) -> None:
    """Feeds and JSON are what indexers ask FlareSolverr for. The browser makes a page of them."""
    for path, media, words in (("items.json", "application/json", "thing"), ("robots.txt", "text/plain", "Disallow")):
        solved = api.post("/v1", json={"cmd": "request.get", "url": f"{site.url}{path}"}).json()["solution"]
        assert solved["headers"]["content-type"].startswith(media)
        assert words in solved["response"], solved
        asked = {"url": f"{site.url}{path}", "formats": ["rawHtml", "markdown"]}
        plain = api.post("/v2/scrape", json=asked).json()["data"]
        assert words in plain["rawHtml"]
        assert not plain["rawHtml"].startswith("<")
        shown = api.post("/v2/scrape", json={**asked, "waitFor": 1}).json()["data"]
        assert words in shown["markdown"]
        assert "<pre" not in shown["markdown"], "what is shown, and not its HTML"


def test_actions_of_firecrawl(api: httpx.Client, site: ScriptedSite) -> None:
    actions = [
        {"type": "click", "selector": "[name=user]"},
        {"type": "write", "text": "a{{da}}"},
        {"type": "press", "key": "Enter"},
        {"type": "wait", "selector": "p"},
        {"type": "scrape"},
        {"type": "executeJavascript", "script": "1 + 1"},
        {"type": "pdf"},
        {"type": "scroll", "direction": "down"},
        {"type": "screenshot"},
    ]
    formats = ["markdown", {"type": "screenshot", "viewport": {"width": 300, "height": 200}}]
    asked = {"url": f"{site.url}login", "formats": formats, "actions": actions, "timeout": 300_000}
    answer = api.post("/v2/scrape", json=asked)
    assert answer.status_code == 200, answer.text
    page = answer.json()["data"]
    assert (page["markdown"], page["metadata"]["url"]) == ("user=a{{da}}", f"{site.url}cookies")
    (scrape,), (value,) = page["actions"]["scrapes"], page["actions"]["javascriptReturns"]
    assert (scrape["url"], value) == (f"{site.url}cookies", {"type": "number", "value": 2})
    assert page["actions"]["pdfs"][0].startswith("data:application/pdf;base64,JVBER")
    pictures = [page["screenshot"], *page["actions"]["screenshots"]]
    assert [each[:30] for each in pictures] == ["data:image/png;base64,iVBORw0K"] * 2
    failed = api.post(
        "/v2/scrape", json={**asked, "actions": [{"type": "click", "selector": "#no"}], "timeout": 40_000}
    )
    assert (failed.status_code, failed.json()["code"]) == (500, "SCRAPE_ACTION_ERROR")


def test_log_in_by_actions_and_by_a_recording(api: httpx.Client, site: ScriptedSite) -> None:
    done = [
        {"do": "fill", "selector": "[name=user]", "text": "{{user}}"},
        {"do": "click", "selector": "button"},
        {"do": "wait_for", "url": "**/cookies"},
        {"do": "extract", "name": "who", "selector": "p"},
    ]
    given = {"url": site.url + "login", "variables": {"user": "ada"}, "steps": done}
    assert scrape(api, scraper="builtin/actions", input=given)["result"]["data"] == {"who": "user=ada"}
    recorded = [
        {"type": "navigate", "url": site.url + "login"},
        {"type": "change", "selectors": [["[name=user]"]], "value": "ada"},
        {
            "type": "click",
            "selectors": [["aria/Log in", 'aria/[role="button"]'], ["button"]],
            "offsetX": 5,
            "offsetY": 5,
            "assertedEvents": [{"type": "navigation", "url": site.url + "cookies", "title": ""}],
        },
        {"type": "waitForExpression", "expression": "document.body.innerText.includes('user=ada')"},
    ]
    run = scrape(api, scraper="builtin/replay", input={"title": "Log in", "steps": recorded})
    assert run["result"]["url"] == site.url + "cookies"
    assert all(step["ok"] for step in run["result"]["steps"])


def test_a_killed_browser_fails_its_run_and_the_next_works(yard: Yard, api: httpx.Client, site: ScriptedSite) -> None:
    asked = site.asked.count("/")
    call = {"scraper": "lab/watched", "input": {"url": site.url}, "wait": False, "policy": {"retries": 0}}
    run_id = api.post("/api/scrape", json=call).json()["id"]
    until(lambda: site.asked.count("/") > asked, "the page is open")
    family = descendants(yard.workers[0].pid)
    browser = next(each for each in family if "--remote-debugging-pipe" in each.words and "--type=" not in each.words)
    os.kill(browser.pid, signal.SIGKILL)
    until(lambda: api.get(f"/api/scrape/{run_id}").json()["status"] == "failed", "it is told")
    assert api.get(f"/api/scrape/{run_id}").json()["exit_reason"] == "browser_crashed"
    until(lambda: not living([each for each in family if "--type=" in each.words]), "nothing of it is left")
    assert scrape(api, url=site.url + "shell", engine="browser")["result"]["title"] == "Shop"


def test_a_shop_that_scripts_fill_by_a_job_with_pictures(yard: Yard, api: httpx.Client, site: ScriptedSite) -> None:
    jobs = Jobs(api)
    wish = {"wait_for": "li.item", "screenshot": True}
    items = [{"item_id": f"p{n}", "url": f"{site.url}shell?page={n}"} for n in range(ITEMS)]
    given = {"formats": ["text"], "browser": wish}
    job_id = jobs.create(items, "builtin/page", input=given, policy={"request_seconds": PATIENCE})
    while jobs.get(job_id)["status"] not in FINAL:  # as long as there is progress
        done = jobs.get(job_id)["counts"]["success"]
        jobs.until(job_id, lambda job, done=done: job["status"] in FINAL or job["counts"]["success"] > done, "progress")
    job = jobs.get(job_id)
    assert (job["counts"]["success"], job["counts"]["total"]) == (ITEMS, ITEMS)
    for item in jobs.items(job_id):
        assert "thing 29 for 29 euros" in item["result"]["text"]
    kept = [file for file in yard.folder.rglob("screenshot.png*") if job_id in str(file)]
    assert {file.parent.name for file in kept} == {item["item_id"] for item in items}
    assert all(file.parent.parent.name == "items" for file in kept)


def test_a_running_page_is_watched_live(yard: Yard, api: httpx.Client, site: ScriptedSite) -> None:
    answer = api.post("/api/scrape", json={"scraper": "lab/watched", "input": {"url": site.url}, "wait": False})
    assert answer.status_code == 202, answer.text
    run_id = answer.json()["id"]
    url = yard.urls[0].replace("http://", "ws://") + f"/api/scrape/{run_id}/live"
    with connect(url, open_timeout=PATIENCE, close_timeout=5) as socket:
        for _ in range(3):
            picture = socket.recv(timeout=PATIENCE)
            assert isinstance(picture, bytes)
            assert picture.startswith(b"\xff\xd8")
        assert api.delete(f"/api/scrape/{run_id}").status_code < 300
        for _ in socket:
            pass  # until it is closed
        assert socket.close_code == 1000
    until(lambda: api.get(f"/api/scrape/{run_id}").json()["status"] == "cancelled", "it has ended")
    with pytest.raises(InvalidStatus), connect(url, open_timeout=PATIENCE):
        pass


def test_a_killed_worker_takes_its_browser_along_and_the_run_is_ended_or_tried_again(
    yard: Yard, api: httpx.Client, site: ScriptedSite
) -> None:
    assert isinstance(yard, Embedded)
    asked = site.asked.count("/")
    call = {"scraper": "lab/watched", "input": {"url": site.url}, "wait": False, "policy": {"retries": 0}}
    run_id = api.post("/api/scrape", json=call).json()["id"]
    until(lambda: site.asked.count("/") > asked, "the page is open")
    (program,) = yard.workers
    family = descendants(program.pid)
    assert any("chrom" in process.words for process in family)
    program.kill()
    until(lambda: not living(family), "all that it started is gone")
    yard.ready(yard.add())
    with yard.client() as again:
        until(lambda: again.get(f"/api/scrape/{run_id}").json()["status"] in ("failed", "succeeded"), "it is told")
        assert again.get(f"/api/scrape/{run_id}").json()["exit_reason"] == "lost_worker"
        assert scrape(again, url=site.url + "shell", engine="browser")["result"]["title"] == "Shop"
