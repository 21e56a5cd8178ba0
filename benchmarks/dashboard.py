"""The page in a browser: its first view with an empty cache beside the API's own health call, a table of a million
items scrolled from end to end, a flood of log lines, and the memory of a view of a busy job, for an hour with
`--pace 20`."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from benchmarks.quantiles import median
from benchmarks.report import Goal, Options, Report, Table, figure, ratio
from scrapeyard.engines.browser.found import find_browser
from scrapeyard.gateway.page import BUILT, INDEX
from scrapeyard.settings import BrowserSettings

PARTS = ("first", "scroll", "flood", "memory")
_VIEWS = 15
_ITEMS = 1_000_000
_JUMPS = 120
_LINES = 100_000
_WATCHED_SECONDS = 180.0
_LONG_MS = 50.0
_LIMITS = {"SCRAPEYARD_LIMITS__LOG_KB": "20000", "SCRAPEYARD_GATEWAY__MAX_UPLOAD_MB": "200"}
_CHATTY = """
import asyncio, time

async def run(ctx, lines: int):
    await asyncio.sleep(3)
    began = time.perf_counter()
    for number in range(lines):
        print("line", number, "of a script that tells much")
    seconds = time.perf_counter() - began
    await asyncio.sleep(5)
    return lines / seconds
"""
_MANIFEST = 'id = "bench/chatty"\nversion = "1.0.0"\n[limits]\nwall_seconds = 600\nlog_kb = 20000\n'
_WATCH_TASKS = """
window.longTasks = [];
new PerformanceObserver(seen => seen.getEntries().forEach(one => window.longTasks.push(one.duration)))
  .observe({ type: "longtask" });
"""
_SCROLL = """async jumps => {
  const box = document.querySelector(".tbody");
  window.longTasks.length = 0;
  for (let jump = 1; jump <= jumps; jump++) {
    box.scrollTop = (box.scrollHeight * ((jump * 37) % jumps)) / jumps;
    await new Promise(drawn => requestAnimationFrame(() => setTimeout(drawn, 30)));
  }
  box.scrollTop = box.scrollHeight;
}"""
Say = Callable[[str], None]


def run(options: Options, say: Say) -> Report:
    """Measure what was asked for."""
    found = find_browser(BrowserSettings())
    if found.missing or not (BUILT / INDEX).exists():
        return Report(bench="page", tables=(), failures={"page": found.missing or "it is not built: make page"})
    from playwright.sync_api import sync_playwright
    from tests.programs import Embedded

    numbers: dict[str, float] = {}
    with Embedded(_LIMITS) as yard, sync_playwright() as driver, yard.client() as api:
        folder = yard.scrapers / "chatty"
        folder.mkdir(parents=True)
        (folder / "scraper.py").write_text(_CHATTY)
        (folder / "scraper.toml").write_text(_MANIFEST)
        browser = driver.chromium.launch(executable_path=found.executable or None, args=["--no-sandbox"])
        for part, measure in (("first", _first), ("flood", _flood), ("memory", _memory), ("scroll", _scroll)):
            if options.wants(part):
                numbers |= measure(browser, yard.urls[0], api, options, say)
        browser.close()
    return _report(numbers)


@contextmanager
def _page(browser: Any) -> Iterator[Any]:
    """A page with a cache of its own, which notes tasks over 50 ms."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en")
    context.set_default_timeout(300_000)
    context.add_init_script(_WATCH_TASKS)
    try:
        yield context.new_page()
    finally:
        context.close()


def _tasks(page: Any) -> list[float]:
    return list(page.evaluate("window.longTasks"))


def _first(browser: Any, origin: str, api: httpx.Client, _options: Options, say: Say) -> dict[str, float]:
    say(f"first view with an empty cache, {_VIEWS} times, and the health call")
    views, calls = [], []
    for _ in range(_VIEWS):
        with _page(browser) as page:
            began = time.perf_counter()
            page.goto(f"{origin}/try", wait_until="commit")
            page.wait_for_selector("main input")
            views.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        api.get("/api/health").raise_for_status()
        calls.append((time.perf_counter() - began) * 1000)
    return {"first_ms": median(views), "first_worst_ms": max(views), "health_ms": median(calls)}


def _flood(browser: Any, origin: str, api: httpx.Client, _options: Options, say: Say) -> dict[str, float]:
    say(f"{_LINES:,} log lines as fast as a script writes them")
    api.post("/api/scrapers/refresh").raise_for_status()
    call = {"scraper": "bench/chatty", "input": {"lines": _LINES}, "wait": 0}
    with _page(browser) as page:
        page.goto(f"{origin}/runs")
        run_id = api.post("/api/scrape", json=call).json()["id"]
        page.goto(f"{origin}/runs/{run_id}?tab=logs")
        page.wait_for_selector("[role=tab]")
        page.evaluate("window.longTasks.length = 0")  # those of loading the page
        page.get_by_text(f"line {_LINES - 1} of").wait_for()
        tasks = _tasks(page)
        answer = api.get(f"/api/scrape/{run_id}", params={"wait": 60}).json()
    return {"lines_per_second": float(answer["result"]), "flood_worst_ms": max(tasks, default=0.0)}


def _memory(browser: Any, origin: str, api: httpx.Client, options: Options, say: Say) -> dict[str, float]:
    seconds = _WATCHED_SECONDS * options.pace
    say(f"a view of a busy job, for {seconds:.0f} s")
    heaps: list[float] = []
    with _page(browser) as page:
        console = page.context.new_cdp_session(page)
        until = time.monotonic() + seconds
        job_id = _busy_job(api, seconds)
        page.goto(f"{origin}/jobs/{job_id}")
        page.get_by_role("table", name="Items").wait_for()
        while time.monotonic() < until:
            page.wait_for_timeout(min(10_000, seconds * 100))
            console.send("HeapProfiler.collectGarbage")
            heaps.append(console.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
        done = api.get(f"/api/jobs/{job_id}").json()["counts"]
        api.post(f"/api/jobs/{job_id}/cancel")
    third = max(1, len(heaps) // 3)
    return {
        "memory_seconds": seconds,
        "memory_items": float(done["success"]),
        "memory_start_mb": median(heaps[:third]),
        "memory_end_mb": median(heaps[-third:]),
    }


def _busy_job(api: httpx.Client, seconds: float) -> str:
    items = "\n".join(f'{{"n": {number}}}' for number in range(int(300 * seconds)))
    where = {"scraper": "builtin/echo", "name": "busy", "policy": '{"rate": 300}'}
    answer = api.post("/api/jobs", params=where, content=items, headers={"Content-Type": "application/x-ndjson"})
    answer.raise_for_status()
    return str(answer.json()["id"])


def _scroll(browser: Any, origin: str, api: httpx.Client, options: Options, say: Say) -> dict[str, float]:
    count = max(20_000, int(_ITEMS * min(1.0, options.pace)))
    say(f"a job of {count:,} items, scrolled to {_JUMPS} places")
    items = "\n".join(f'{{"n": {number}}}' for number in range(count))
    where = {"scraper": "builtin/echo", "name": "million", "paused": "true"}
    kind = {"Content-Type": "application/x-ndjson"}
    answer = api.post("/api/jobs", params=where, content=items, headers=kind, timeout=600)
    answer.raise_for_status()
    job_id = answer.json()["id"]
    while api.get(f"/api/jobs/{job_id}").json()["counts"]["total"] < count:
        time.sleep(0.5)
    with _page(browser) as page:
        page.goto(f"{origin}/jobs/{job_id}")
        page.get_by_text("n: 3", exact=True).wait_for()
        page.evaluate(_SCROLL, _JUMPS)
        page.get_by_text(f"n: {count - 1}", exact=True).wait_for()
        tasks = _tasks(page)
        rows = page.locator(".tbody [role=row]").count()
    return {
        "scroll_items": float(count),
        "scroll_worst_ms": max(tasks, default=0.0),
        "scroll_long": float(len(tasks)),
        "scroll_rows": float(rows),
    }


def _report(found: dict[str, float]) -> Report:
    def of(name: str) -> float:
        return found.get(name, float("nan"))

    growth = ratio(of("memory_end_mb"), of("memory_start_mb"))
    rows = (
        ("first view, empty cache, ms", figure(of("first_ms"))),
        ("its slowest, ms", figure(of("first_worst_ms"))),
        ("`GET /api/health`, ms", figure(of("health_ms"))),
        ("first view / health call", figure(ratio(of("first_ms"), of("health_ms")), "x")),
        ("items of the scrolled job", figure(of("scroll_items"))),
        ("rows drawn at its end", figure(of("scroll_rows"))),
        ("tasks over 50 ms while scrolling", figure(of("scroll_long"))),
        ("longest of them, ms", figure(of("scroll_worst_ms"))),
        ("log lines a second", figure(of("lines_per_second"))),
        ("longest task meanwhile, ms", figure(of("flood_worst_ms"))),
        ("a busy job watched, s", figure(of("memory_seconds"))),
        ("items done meanwhile", figure(of("memory_items"))),
        ("memory at its start, MB", figure(of("memory_start_mb"))),
        ("memory at its end, MB", figure(of("memory_end_mb"))),
    )
    goals = (
        Goal(name="first view", measured=of("first_ms"), bound=1000, at_least=False, unit="ms"),
        Goal(name="longest task, scroll", measured=of("scroll_worst_ms"), bound=_LONG_MS, at_least=False, unit="ms"),
        Goal(name="longest task, flood", measured=of("flood_worst_ms"), bound=2 * _LONG_MS, at_least=False, unit="ms"),
        Goal(name="log lines a second", measured=of("lines_per_second"), bound=10_000, at_least=True, unit="/s"),
        Goal(name="memory at the end", measured=growth, bound=1.2, at_least=False),
    )
    table = Table(title="The page in a browser", columns=("", "measured"), rows=rows)
    return Report(bench="page", tables=(table,), goals=goals, numbers=dict(found))
