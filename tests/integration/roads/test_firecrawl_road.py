"""Firecrawl's own clients against our door, through the real programs. Every public method is tried, or refused."""

import asyncio
import inspect
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from firecrawl.v1 import V1FirecrawlApp
from firecrawl.v1.client import AsyncV1FirecrawlApp, V1CrawlWatcher, V1ScrapeOptions
from firecrawl.v2.client import FirecrawlClient
from firecrawl.v2.client_async import AsyncFirecrawlClient
from firecrawl.v2.types import PaginationConfig, ScrapeOptions
from firecrawl.v2.utils.error_handler import BadRequestError, FirecrawlError
from websockets.exceptions import InvalidStatus

from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.engines.solver.firecrawl import FirecrawlSolver
from scrapeyard.engines.solver.port import SolverAway
from scrapeyard.errors import FetchFailed
from scrapeyard.settings import EscalationSettings, HttpSettings
from tests.leaks import PATIENCE, until
from tests.programs import ROOT, Embedded, Yard
from tests.services.firecrawl import KEY, SearchServer, serving
from tests.services.models import ModelServer
from tests.services.static_site import StaticSite

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
NOT_HERE = "is not available here"
REFUSED_V2: dict[str, Callable[[Any], Any]] = {
    "agent": lambda each: each.agent(prompt="x"),
    "start_agent": lambda each: each.start_agent(prompt="x"),
    "get_agent_status": lambda each: each.get_agent_status("x"),
    "get_agent_snapshot": lambda each: each.get_agent_snapshot("x", "y"),
    "get_agent_thread": lambda each: each.get_agent_thread("x"),
    "get_agent_trace": lambda each: each.get_agent_trace("x"),
    "list_agents": lambda each: each.list_agents(),
    "cancel_agent": lambda each: each.cancel_agent("x"),
    "browser": lambda each: each.browser(),
    "browser_execute": lambda each: each.browser_execute("x", "1"),
    "delete_browser": lambda each: each.delete_browser("x"),
    "list_browsers": lambda each: each.list_browsers(),
    "interact": lambda each: each.interact("x", "1"),
    "scrape_execute": lambda each: each.scrape_execute("x", "1"),
    "stop_interaction": lambda each: each.stop_interaction("x"),
    "stop_interactive_browser": lambda each: each.stop_interactive_browser("x"),
    "delete_scrape_browser": lambda each: each.delete_scrape_browser("x"),
    "create_monitor": lambda each: each.create_monitor("x", {"cron": "* * * * *"}, []),
    "delete_monitor": lambda each: each.delete_monitor("x"),
    "get_monitor": lambda each: each.get_monitor("x"),
    "get_monitor_check": lambda each: each.get_monitor_check("x", "y"),
    "list_monitors": lambda each: each.list_monitors(),
    "list_monitor_checks": lambda each: each.list_monitor_checks("x"),
    "run_monitor": lambda each: each.run_monitor("x"),
    "update_monitor": lambda each: each.update_monitor("x", name="y"),
    "crawl_params_preview": lambda each: each.crawl_params_preview("http://a.example/", "x"),
    "developer_search": lambda each: each.developer_search("x"),
    "gov_search": lambda each: each.gov_search("x"),
    "search_papers": lambda each: each.search_papers("x"),
    "search_github": lambda each: each.search_github("x"),
    "inspect_paper": lambda each: each.inspect_paper("x"),
    "read_paper": lambda each: each.read_paper("x", "why"),
    "related_papers": lambda each: each.related_papers("x", intent="why"),
    "parse": lambda each: each.parse(b"<p>x</p>", filename="x.html"),
    "get_parse_formats": lambda each: each.get_parse_formats(),
    "find_tools": lambda each: each.find_tools(query="x"),
    "scrape_alexandria": lambda each: each.scrape_alexandria([{"provider": "x", "capability": "y"}]),
}
REFUSED_V1 = frozenset(
    {
        *("async_deep_research", "check_deep_research_status", "deep_research"),
        *("async_generate_llms_text", "check_generate_llms_text_status", "generate_llms_text"),
    }
)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(_seen) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _seen(lines: list[str]) -> dict[str, Any]:
    """What the model finds in a page of the shop."""
    return {"maker": next((name for line in lines if (name := "Oak & Iron") in line), None)}


@pytest.fixture(scope="module")
def engine() -> Iterator[SearchServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def yard(
    nothing_left: None, model: ModelServer, engine: SearchServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yard]:
    file = tmp_path_factory.mktemp("settings") / "scrapeyard.toml"
    file.write_text(
        f'[[ai.providers]]\nname = "main"\nurl = "{model.url}"\nmodel = "m1"\n'
        f'[escalation]\nsolver = "firecrawl"\nsolver_url = "{engine.url}"\nsolver_key = "{KEY}"\n'
    )
    with Embedded({"SCRAPEYARD_CONFIG": str(file)}) as yard:
        yield yard
        assert not list(yard.errors())


@pytest.fixture(scope="module")
def v2(yard: Yard) -> FirecrawlClient:
    return FirecrawlClient(api_key="any", api_url=yard.urls[0])


@pytest.fixture(scope="module")
def shop(yard: Yard) -> str:
    return yard.shop.url


def methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}


def ended(look: Callable[[], Any]) -> Any:
    """A job once it has ended."""
    return until(lambda: job if (job := look()).status == "completed" else None, "the job has ended")


def test_pages(v2: FirecrawlClient, shop: str) -> None:
    page = v2.scrape(
        f"{shop}/product/1",
        formats=[
            *("markdown", "html", "rawHtml", "links", "images", "product"),
            {"type": "attributes", "selectors": [{"selector": "img", "attribute": "src"}]},
        ],
        exclude_tags=["nav"],
        max_age=600_000,
    )
    assert "Aurora Lamp" in (page.markdown or "")
    assert page.html
    assert page.raw_html
    assert len(page.raw_html) > len(page.html)
    assert page.images == [f"{shop}/image/1.svg"]
    assert page.product
    assert page.product.variants[0].price
    assert page.product.variants[0].price.amount == 217.71
    told = page.metadata_typed
    assert (told.title, told.language, told.status_code) == ("Aurora Lamp · Practice Shop", "en", 200)
    assert (told.og_title, told.proxy_used, told.cache_state) == ("Aurora Lamp", "basic", "miss")
    again = v2.scrape_url(f"{shop}/product/1", formats=["markdown"], max_age=600_000).metadata_typed
    assert (again.cache_state, bool(again.cached_at)) == ("hit", True)
    gone = v2.scrape(f"{shop}/nowhere")
    assert (gone.metadata_typed.status_code, gone.metadata_typed.error) == (404, "Not Found")
    links = [each.url for each in v2.map(f"{shop}/", limit=4).links]
    assert len(links) == 4
    assert links[0] == f"{shop}/"
    assert len(v2.map_url(f"{shop}/", sitemap="skip", search="kitchen").links) >= 1


def test_data_and_changes(v2: FirecrawlClient, shop: str) -> None:
    schema = {"type": "object", "properties": {"maker": {"type": "string"}}, "required": ["maker"]}
    page = v2.scrape(f"{shop}/product/1", formats=[{"type": "json", "schema": schema}, "markdown"])
    assert page.json == {"maker": "Oak & Iron"}  # type: ignore[comparison-overlap] # a field that shadows a method
    tracking = [{"type": "changeTracking", "modes": ["git-diff"]}]
    first = v2.scrape(f"{shop}/product/2".removeprefix("http://"), formats=["markdown", *tracking])
    assert first.change_tracking
    assert first.change_tracking["changeStatus"] == "new"
    told = until(lambda: _same(v2.scrape(f"{shop}/product/2", formats=tracking)), "the first scrape is in the store")
    assert told["previousScrapeAt"]
    started = v2.start_extract([f"{shop}/product/1", f"{shop}/product/3"], schema=schema)
    done = ended(lambda: v2.get_extract_status(started.id or ""))
    assert done.data == {"maker": "Oak & Iron"}


def test_changes_of_crawls_and_batches(v2: FirecrawlClient, static_site: StaticSite) -> None:
    """Single scrapes, batches and crawls are compared with each other; whatever is cached, pages are fetched anew."""
    names = ("a", "b", "c")

    def write(name: str, content: str) -> None:
        (static_site.folder / name).write_text(f"<!doctype html><title>{name}</title><main>{content}</main>")

    for name in names:
        write(name, f"<p>First of {name}</p>")
    write("index", "".join(f'<a href="/{name}">{name}</a>' for name in names))
    tracking = [{"type": "changeTracking", "modes": ["git-diff"], "tag": "daily"}]
    urls = [static_site.url + name for name in names]
    batch = v2.start_batch_scrape(urls[:2], formats=tracking, max_age=600_000)
    first = ended(lambda: v2.get_batch_scrape_status(batch.id))
    assert [each.change_tracking["changeStatus"] for each in first.data] == ["new", "new"]
    assert all("maxAge is not used" in each.warning for each in first.data)

    assert v2.scrape(urls[1], max_age=600_000).markdown == "First of b"
    write("b", "<p>Second of b</p>")
    assert v2.scrape(urls[1], max_age=600_000).markdown == "First of b", "it is cached"
    options = ScrapeOptions(formats=["markdown", *tracking], max_age=600_000)
    crawl = v2.start_crawl(f"{static_site.url}index", sitemap="skip", crawl_entire_domain=True, scrape_options=options)
    second = changes_of(ended(lambda: v2.get_crawl_status(crawl.id)))
    statuses = {name: told["changeStatus"] for name, told in second.items()}
    assert statuses == {"index": "new", "a": "same", "b": "changed", "c": "new"}
    assert second["a"]["previousScrapeAt"]
    assert "-First of b\n+Second of b" in second["b"]["diff"]["text"]
    assert changes_of(v2.get_crawl_status(crawl.id)) == second, "the same again"
    assert changes_of(v2.get_batch_scrape_status(batch.id)) == changes_of(first)

    (static_site.folder / "c").unlink()
    third = {url[-1]: v2.scrape(url, formats=tracking).change_tracking or {} for url in urls}
    assert {name: told["changeStatus"] for name, told in third.items()} == {"a": "same", "b": "same", "c": "removed"}
    other = v2.scrape(urls[0], formats=[{"type": "changeTracking", "tag": "weekly"}])
    assert (other.change_tracking or {})["changeStatus"] == "new", "of another tag"


def changes_of(job: Any) -> dict[str, Any]:
    """By the name of the page."""
    return {each.metadata_typed.source_url.rpartition("/")[2]: each.change_tracking for each in job.data}


def _same(page: Any) -> dict[str, Any] | None:
    told: dict[str, Any] = page.change_tracking
    return told if told["changeStatus"] == "same" else None


def test_crawls_and_batches(v2: FirecrawlClient, shop: str) -> None:
    options = ScrapeOptions(formats=["markdown"])
    started = v2.start_crawl(f"{shop}/", limit=4, sitemap="skip", scrape_options=options)
    assert started.url.endswith(f"/v2/crawl/{started.id}")
    done = ended(lambda: v2.get_crawl_status(started.id))
    assert (done.completed, len(done.data)) == (4, 4)
    assert all(each.markdown and each.links is None for each in done.data), "links are read, and not shown"
    assert v2.wait_crawl(started.id, poll_interval=1).status == "completed"
    urls = [f"{shop}/product/{number}" for number in range(1, 106)]
    chosen = v2.start_crawl(
        f"{shop}/", limit=4, include_paths=["^/category/toys", "product/20[0-9]$"], exclude_paths=["^/category/(?:k|g)"]
    )
    found = {each.metadata_typed.source_url for each in ended(lambda: v2.get_crawl_status(chosen.id)).data}
    assert found == {f"{shop}/", *(f"{shop}/{path}" for path in ("category/toys", "product/200", "product/201"))}
    batch = v2.start_batch_scrape([*urls, shop.replace("http:", "https:")], formats=["links"], max_concurrency=50)
    one = PaginationConfig(auto_paginate=False)
    page = ended(lambda: v2.get_batch_scrape_status(batch.id, pagination_config=one))
    assert (page.completed, page.total, len(page.data)) == (105, 106, 100)
    rest = v2.get_batch_scrape_status_page(page.next)
    assert (len(rest.data), rest.next) == (5, None)
    assert len(v2.get_batch_scrape_status(batch.id).data) == 105
    (failed,) = v2.get_batch_scrape_errors(batch.id).errors
    assert failed.url == shop.replace("http:", "https:")
    slow = v2.start_crawl(f"{shop}/", limit=50, delay=100)
    few = PaginationConfig(max_pages=3)
    running = until(lambda: (job := v2.get_crawl_status(slow.id, few)).data and job, "the first page is there")
    assert (running.status, len(running.data)) == ("scraping", 1), "no page is asked for twice while a job runs"
    assert slow.id in {each.id for each in v2.get_active_crawls().crawls}
    assert v2.get_crawl_errors(slow.id).errors == []
    assert v2.cancel_crawl(slow.id)
    until(lambda: v2.get_crawl_status(slow.id).status == "cancelled", "it is cancelled")
    assert v2.cancel_crawl(started.id) is False, "it has ended"


def test_a_search(v2: FirecrawlClient, engine: SearchServer) -> None:
    page = {"url": "https://a.example/1", "title": "One", "description": "First", "position": 1}
    article = {"url": "https://a.example/2", "title": "Two", "snippet": "S", "imageUrl": "https://a.example/2.png"}
    picture = {"url": "https://a.example/3", "imageUrl": "https://a.example/3.png", "imageWidth": 9, "imageHeight": 8}
    engine.body = {"success": True, "data": {"web": [page], "news": [article], "images": [picture]}, "creditsUsed": 2}
    asked = {"limit": 3, "tbs": "qdr:d", "location": "Berlin", "country": "DE", "categories": ["pdf"]}
    domains = {"include_domains": ["a.example"]}
    found = v2.search("aurora lamp", sources=["web", "news", "images"], timeout=50_000, **asked, **domains)
    assert found.web
    assert found.news
    assert found.images
    assert found.web[0].model_dump(exclude_none=True) == page
    assert (found.news[0].snippet, found.news[0].image_url) == ("S", article["imageUrl"])
    assert (found.images[0].image_url, found.images[0].image_width) == (picture["imageUrl"], 9)
    told = {"path": "/v2/search", "key": f"Bearer {KEY}", "query": "aurora lamp", "timeout": 45_000, **asked}
    sources = ["web", "news", "images"]
    assert engine.asked.pop() == {**told, "sources": sources, "includeDomains": ["a.example"]}


def test_pages_of_a_search(yard: Yard, v2: FirecrawlClient, engine: SearchServer, shop: str) -> None:
    """They are fetched here. One that cannot be had is a result without a page."""
    urls = [f"{shop}/product/1", shop.replace("http:", "https:"), f"{shop}/product/2"]
    engine.body = {"success": True, "data": {"web": [{"url": url, "title": "T"} for url in urls]}}
    count = len(engine.asked)
    first, away, third = v2.search("lamp", scrape_options=ScrapeOptions(formats=["markdown"])).web or []
    assert "Aurora Lamp" in (first.markdown or "")
    assert third.metadata_typed.title
    assert away.model_dump(exclude_none=True) == {"url": urls[1], "title": "T"}
    assert [each["path"] for each in engine.asked[count:]] == ["/v2/search"], "pages are not asked of the engine"
    v1 = V1FirecrawlApp(api_key="any", api_url=yard.urls[0])
    told = v1.search("lamp", limit=2, scrape_options=V1ScrapeOptions(formats=["links"])).data
    assert [each["url"] for each in told] == urls[:2]
    assert told[0]["links"]
    assert told[1]["metadata"]["error"]


def test_a_search_that_the_engine_refuses(v2: FirecrawlClient, engine: SearchServer) -> None:
    engine.status, engine.body = 402, {"success": False, "error": f"no credits for {KEY}"}
    try:
        with pytest.raises(FirecrawlError, match="refuses us with 402: no credits for") as told:
            v2.search("lamp")
    finally:
        engine.status = 200
    assert KEY not in str(told.value)
    assert engine.url.removeprefix("http://") in str(told.value), "whose fault it is"


def test_watching(v2: FirecrawlClient, shop: str) -> None:
    batch = v2.start_batch_scrape([f"{shop}/product/{number}" for number in range(1, 4)], formats=["links"])
    done, seen = Event(), list[str]()
    watcher = v2.watcher(batch.id, kind="batch", poll_interval=1)
    watcher.add_listener(lambda job: seen.append(job.status))
    watcher.add_event_listener("done", lambda told: done.set() if len(told["data"]) == 3 else None)
    watcher.start()
    try:
        assert done.wait(PATIENCE), seen
    finally:
        watcher.stop()
    until(lambda: seen[-1:] == ["completed"], "the listener is told")


async def test_watching_in_the_first_version(yard: Yard, shop: str) -> None:
    """Each document comes once, also those that ended before somebody watched; then the end."""
    v1 = V1FirecrawlApp(api_key="any", api_url=yard.urls[0])
    told: dict[str, list[Any]] = {"document": [], "done": [], "error": []}
    watcher = await asyncio.to_thread(v1.crawl_url_and_watch, f"{shop}/", limit=5)
    await asyncio.to_thread(ended, lambda: v1.check_crawl_status(watcher.id))
    late = await asyncio.to_thread(
        v1.batch_scrape_urls_and_watch, [f"{shop}/product/{number}" for number in range(1, 121)], formats=["links"]
    )
    for watched, count in ((watcher, 5), (late, 120)):
        for name, seen in told.items():
            seen.clear()
            watched.add_event_listener(name, seen.append)
        async with asyncio.timeout(PATIENCE):
            await watched.connect()
        assert not told["error"]
        urls = [each["data"]["metadata"]["sourceURL"] for each in told["document"]]
        assert len(urls) == len(set(urls)) == count
        assert [(each["status"], len(each["data"])) for each in told["done"]] == [("completed", count)]


async def test_watching_what_is_not_there(yard: Yard) -> None:
    watcher = V1CrawlWatcher("job_none", V1FirecrawlApp(api_key="any", api_url=yard.urls[0]))
    with pytest.raises(InvalidStatus, match="404"):
        await watcher.connect()


def test_use(v2: FirecrawlClient) -> None:
    assert v2.get_credit_usage().remaining_credits > 0
    assert v2.get_token_usage().remaining_tokens > 0
    assert v2.get_credit_usage_historical().success
    assert v2.get_token_usage_historical().success
    assert v2.get_queue_status().jobs_in_queue >= 0
    assert v2.get_concurrency().max_concurrency > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"formats": ["branding"]}, "there is no reader of brands"),
        ({"formats": ["summary", {"type": "question", "question": "why?"}]}, "questions about a page"),
        ({"lockdown": True}, "pages are not served from the cache alone"),
        ({"actions": [{"type": "screenshot", "quality": 50}]}, "Input should be 100"),
        ({"actions": [{"type": "dance"}]}, "dance"),
        ({"parsers": []}, "documents are always read"),
        ({"timeout": 10**9}, "less than or equal"),
    ],
)
def test_what_there_is_not_is_told(v2: FirecrawlClient, shop: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises((BadRequestError, ValueError), match=re.escape(words)):
        v2.scrape(f"{shop}/", **options)


def test_every_other_method_is_refused_with_a_reason(v2: FirecrawlClient) -> None:
    for name, call in REFUSED_V2.items():
        with pytest.raises((FirecrawlError, RuntimeError)) as told:
            call(v2)
        assert NOT_HERE in str(told.value), f"{name}: {told.value}"


def test_the_first_version(yard: Yard, shop: str) -> None:
    v1 = V1FirecrawlApp(api_key="any", api_url=yard.urls[0])
    page = v1.scrape_url(f"{shop}/product/1", formats=["markdown", "links"], only_main_content=False)
    assert page.success
    assert page.metadata["title"] == "Aurora Lamp · Practice Shop"
    assert len(v1.map_url(f"{shop}/", limit=3).links) == 3
    crawl = v1.async_crawl_url(f"{shop}/", limit=3, scrape_options=V1ScrapeOptions(formats=["markdown"]))
    assert len(ended(lambda: v1.check_crawl_status(crawl.id)).data) == 3
    assert v1.check_crawl_errors(crawl.id).errors == []
    slow = v1.async_crawl_url(f"{shop}/", limit=50, delay=100)
    assert v1.cancel_crawl(slow.id)
    batch = v1.async_batch_scrape_urls([f"{shop}/product/1"], formats=["markdown"])
    assert len(ended(lambda: v1.check_batch_scrape_status(batch.id)).data) == 1
    assert v1.check_batch_scrape_errors(batch.id).errors == []
    started = v1.async_extract([f"{shop}/product/1"], prompt="maker")
    assert started.id
    assert v1.get_extract_status(started.id).success
    assert v1.crawl_url(f"{shop}/", limit=2, poll_interval=1).completed == 2
    many = v1.batch_scrape_urls([f"{shop}/product/1"], formats=["links"], poll_interval=1)
    assert (many.status, len(many.data)) == ("completed", 1)


async def test_our_own_door_as_an_outside_engine(yard: Yard, shop: str) -> None:
    settings = EscalationSettings(solver="firecrawl", solver_url=yard.urls[0], solver_pages_daily=2)
    solver = FirecrawlSolver(settings, dns=GuardedDns(HttpSettings(allow_private=True)), max_bytes=1_000_000)
    await solver.start()
    try:
        page = (
            await solver.solve(FetchRequest(url=f"{shop}/product/1"), Caller(), proxy=None, seconds=PATIENCE)
        ).response
        assert (page.status, page.url, page.strategy) == (200, f"{shop}/product/1", "solver")
        assert b"<title>Aurora Lamp" in page.body
        gone = (
            await solver.solve(FetchRequest(url=f"{shop}/nowhere"), Caller(), proxy=None, seconds=PATIENCE)
        ).response
        assert gone.status == 404
        with pytest.raises(FetchFailed, match="pages of this day"):
            await solver.solve(FetchRequest(url=f"{shop}/"), Caller(), proxy=None, seconds=PATIENCE)
        assert await solver.healthy()
    finally:
        await solver.stop()


async def test_an_outside_engine_that_is_none(yard: Yard, shop: str) -> None:
    for place, words in ((shop, "does not speak"), ("http://127.0.0.1:1", "does not answer")):
        settings = EscalationSettings(solver="firecrawl", solver_url=place)
        solver = FirecrawlSolver(settings, dns=GuardedDns(HttpSettings(allow_private=True)), max_bytes=1_000_000)
        await solver.start()
        try:
            with pytest.raises(SolverAway, match=words):
                await solver.solve(FetchRequest(url=f"{shop}/"), Caller(), proxy=None, seconds=PATIENCE)
        finally:
            await solver.stop()


def test_without_waiting(yard: Yard, shop: str) -> None:
    async def both() -> None:
        v2 = AsyncFirecrawlClient(api_key="any", api_url=yard.urls[0])
        page = await v2.scrape(f"{shop}/product/1", formats=["markdown"])
        assert page.metadata_typed.title == "Aurora Lamp · Practice Shop"
        crawl = await v2.crawl(url=f"{shop}/", limit=2, poll_interval=1)
        assert (crawl.status, len(crawl.data)) == ("completed", 2)
        assert len((await v2.map(f"{shop}/", limit=3)).links) == 3
        v1 = AsyncV1FirecrawlApp(api_key="any", api_url=yard.urls[0])
        assert (await v1.scrape_url(f"{shop}/product/1", formats=["markdown"])).success

    asyncio.run(both())


PROGRAM = """
import { pathToFileURL } from "node:url";
const [api, shop, place] = process.argv.slice(2);
const { default: Firecrawl } = await import(pathToFileURL(place));
const firecrawl = new Firecrawl({ apiKey: "any", apiUrl: api });
function methods(of) {
  const names = new Set();
  for (let each = of; each && each !== Object.prototype; each = Object.getPrototypeOf(each))
    for (const [name, one] of Object.entries(Object.getOwnPropertyDescriptors(each)))
      if (typeof one.value === "function" && name !== "constructor" && !name.startsWith("_")) names.add(name);
  return [...names];
}
const page = await firecrawl.scrape(`${shop}/product/1`, { formats: ["markdown", "links"] });
const crawl = await firecrawl.crawl(`${shop}/`, { limit: 3, pollInterval: 1 });
const urls = [`${shop}/product/1`, `${shop}/product/2`];
const batch = await firecrawl.batchScrape(urls, { options: { formats: ["markdown"] }, pollInterval: 1 });
const map = await firecrawl.map(`${shop}/`, { limit: 5 });
const active = await firecrawl.getActiveCrawls();
const errors = await firecrawl.getCrawlErrors(crawl.id);
const credits = await firecrawl.getCreditUsage();
const queue = await firecrawl.getQueueStatus();
const faults = [];
console.error = (...words) => faults.push(words.join(" "));
const watched = typeof WebSocket === "undefined" ? 2 : await new Promise(async (done, failed) => {
  const watcher = await firecrawl.v1.batchScrapeUrlsAndWatch(urls, { formats: ["links"] });
  let count = 0;
  watcher.addEventListener("document", () => { count += 1; });
  watcher.addEventListener("error", (event) => failed(new Error(event.detail.error)));
  watcher.addEventListener("done", () => watcher.ws.addEventListener("close", () => done(count)));
});
const slow = await firecrawl.startCrawl(`${shop}/`, { limit: 50, delay: 100 });
let running;
do {
  running = await firecrawl.getCrawlStatus(slow.id);
} while (!running.data.length);
const cancelled = await firecrawl.cancelCrawl(slow.id);
const first = await firecrawl.v1.scrapeUrl(`${shop}/product/1`, { formats: ["markdown"] });
const firstMap = await firecrawl.v1.mapUrl(`${shop}/`, { limit: 5 });
const search = await firecrawl.search("x");
let refused = "";
try {
  await firecrawl.startAgent({ prompt: "x" });
} catch (error) {
  refused = error.message;
}
console.log(JSON.stringify({
  methods: [...methods(firecrawl), ...methods(firecrawl.v1)],
  title: page.metadata.title, crawl: [crawl.status, crawl.data.length], batch: [batch.status, batch.data.length],
  map: map.links.length, active: active.success, errors: errors.errors.length, credits: credits.remainingCredits > 0,
  queue: queue.jobsInQueue >= 0, first: first.success, firstMap: firstMap.links.length, refused,
  search: search.web[0].url, watched, faults, running: [running.status, running.data.length], cancelled,
}));
"""
INTERNAL_JS = frozenset(
    {
        *("deleteRequest", "getRequest", "getVersion", "handleError", "init", "isCloudService", "isRetryableError"),
        *("monitorJobStatus", "postRequest", "prepareHeaders"),
    }
)
"""Of the client itself, not of its API."""


def test_the_client_for_node(yard: Yard, engine: SearchServer, shop: str, tmp_path: Path) -> None:
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not there")
    root = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    place = Path(root.stdout.strip()) / "@mendable/firecrawl-js/dist/index.js"
    if not place.exists():
        pytest.skip("npm install -g @mendable/firecrawl-js is needed")
    (tmp_path / "program.mjs").write_text(PROGRAM)
    engine.body = {"success": True, "data": {"web": [{"url": "https://a.example/1"}]}}
    words = ["node", *_websockets(), str(tmp_path / "program.mjs"), yard.urls[0], shop, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told.pop("methods")) - INTERNAL_JS <= table().keys(), "docs/firecrawl.md names every method"
    assert NOT_HERE in told.pop("refused")
    assert told == {
        "title": "Aurora Lamp · Practice Shop",
        "crawl": ["completed", 3],
        "batch": ["completed", 2],
        "map": 5,
        "active": True,
        "errors": 0,
        "credits": True,
        "queue": True,
        "first": True,
        "firstMap": 5,
        "search": "https://a.example/1",
        "watched": 2,
        "faults": [],
        "running": ["scraping", 1],
        "cancelled": True,
    }


def _websockets() -> list[str]:
    """Options of Node for a global WebSocket, which has been there by itself since version 22."""
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return ["--experimental-websocket"] if said.stdout.startswith(("v20.", "v21.")) else []


def table() -> dict[str, str]:
    """The methods that the page of the docs tells of, and what it says of each."""
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \|$", (ROOT / "docs/firecrawl.md").read_text("utf-8"), re.MULTILINE)
    return {name: words for names, words in rows for name in re.findall(r"`(\w+)`", names)}


def test_the_docs_tell_of_every_method() -> None:
    told = table()
    v2 = methods(FirecrawlClient) | methods(AsyncFirecrawlClient)
    v1 = methods(V1FirecrawlApp) | methods(AsyncV1FirecrawlApp)
    assert (v2 | v1) - told.keys() == set()
    passing = {name for name, words in told.items() if words.startswith("passes")}
    assert passing & v2 == v2 - REFUSED_V2.keys(), "what is not refused passes"
    assert passing & (v1 - v2) == v1 - v2 - REFUSED_V1
