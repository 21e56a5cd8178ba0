"""Whatever happens in whatever order: never older than asked, never another's page, never over the limit, and nothing
from before an invalidation."""

import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.stage import Cached
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.model import FetchPolicy, Invalidate, Scraper, ScraperRef
from scrapeyard.settings import CacheSettings

NEAR, FAR = 9_000, 6_000
TTL = 500.0
SITES = Sites()
URLS = ["https://a.example/", "https://www.a.example/x", "https://b.example/"]
SCRAPERS = ["shop/one", "shop/two"]


class Page:
    """What a made-up site does with one URL."""

    def __init__(self) -> None:
        self.version = 1
        self.headers: list[tuple[str, str]] = []
        self.tagged = False


class CacheMachine(RuleBasedStateMachine):
    """Two workers with a memory each, one folder of pages, and a site that answers who asked for what, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.pages = {url: Page() for url in URLS}
        self.pages[URLS[0]].headers = [("vary", "X-Shop")]
        self.pages[URLS[1]].headers = [("set-cookie", "a=b")]
        self.dropped = dict.fromkeys(URLS, 0.0)
        self.shared = DiskPages(Path(self.folder.name), limit_bytes=FAR, max_page_bytes=4000, clock=self.clock)
        self.runner.run(self.shared.start())
        self.memories = [MemoryPages(NEAR, self.clock) for _ in range(2)]
        given = CacheSettings(max_page_mb=4000 / 2**20, ttl_seconds=(f"*/*={TTL}",))
        self.workers = [Cached(self.site, memory, self.shared, given, clock=self.clock) for memory in self.memories]

    def clock(self) -> float:
        return self.now

    async def site(self, context: FetchContext) -> FetchResponse:
        request, caller = context.request, context.caller
        page = self.pages[request.url]
        tag = f'"{page.version}"'
        asked = {name.lower(): value for name, value in request.headers.items()}
        confirmed = page.tagged and asked.get("if-none-match") == tag
        said = {
            "who": caller.scraper.ref.id if caller.scraper else "",
            "session": request.session,
            "cookie": asked.get("cookie"),
            "shop": asked.get("x-shop"),
            "version": page.version,
            "at": self.now,
            "fill": random.Random(page.version).randbytes(300 * (page.version % 7)).hex(),
        }
        return FetchResponse(
            url=request.url,
            status=304 if confirmed else 200,
            headers=(*page.headers, *((("etag", tag),) if page.tagged else ()), ("x-at", str(self.now))),
            body=b"" if confirmed else json.dumps(said).encode(),
            encoding="utf-8",
            elapsed_ms=0,
            bytes_received=10,
        )

    @rule(
        url=st.sampled_from(URLS),
        worker=st.integers(0, 1),
        who=st.sampled_from(SCRAPERS),
        session=st.sampled_from([""] * 6 + ["s", "t"]),
        cookie=st.sampled_from([None] * 6 + ["1", "2"]),
        shop=st.sampled_from([None, None, "p"]),
        max_age=st.sampled_from([None, 0.0, 60.0, 400.0, 10_000.0, 10_000.0]),
        mode=st.sampled_from(["through", "through", "back", "around", "off"]),
    )
    def fetch(self, url: str, worker: int, **how: Any) -> None:
        self._ask(url, worker, **how)

    @rule(
        worker=st.integers(0, 1),
        who=st.sampled_from(SCRAPERS),
        session=st.sampled_from(["", "", "s"]),
        shop=st.sampled_from([None, "p"]),
        max_age=st.sampled_from([10_000.0, 60.0]),
    )
    def fetch_all(self, worker: int, who: str, session: str, shop: str | None, max_age: float) -> None:
        """So that most of what is kept is served now and then, and what should not be is seen."""
        for url in URLS:
            self._ask(url, worker, who, session, None, shop, max_age, "through")

    def _ask(
        self,
        url: str,
        worker: int,
        who: str,
        session: str,
        cookie: str | None,
        shop: str | None,
        max_age: float | None,
        mode: Any,
    ) -> None:
        headers = {name: value for name, value in (("Cookie", cookie), ("X-Shop", shop)) if value}
        request = FetchRequest(url=url, session=session, headers=headers)
        scraper = Scraper(ref=ScraperRef(id=who, version="1.0.0"), folder=None)
        caller = Caller(scraper=scraper, policy=FetchPolicy(max_age_seconds=max_age, cache=mode))
        page = self.pages[url]
        answer = self.runner.run(self._fetch(self.workers[worker], request, caller))
        said = json.loads(answer.body)
        fresh_at = float(dict(answer.headers)["x-at"])
        assert self.now - fresh_at <= (max_age or 0)
        assert self.now - fresh_at <= TTL
        assert (answer.age_seconds or 0) == self.now - fresh_at
        assert fresh_at >= self.dropped[url]
        if answer.age_seconds is None:
            assert said["version"] == page.version
        if session or cookie or any(name in ("set-cookie", "cache-control") for name, _ in answer.headers):
            assert (said["who"], said["session"], said["cookie"]) == (who, session, cookie)
        if any(name == "vary" for name, _ in answer.headers):
            assert said["shop"] == shop

    async def _fetch(self, worker: Cached, request: FetchRequest, caller: Caller) -> FetchResponse:
        """With all writes done when it returns, so that the folder stands still between the steps."""
        answer = await worker(FetchContext.of(request, caller, SITES))
        await worker.stop()
        return answer

    @rule(url=st.sampled_from(URLS), tagged=st.booleans(), kind=st.sampled_from(["", "private", "cookie", "vary"]))
    def change(self, url: str, tagged: bool, kind: str) -> None:
        page = self.pages[url]
        page.version += 1
        page.tagged = tagged
        page.headers = {
            "": [],
            "private": [("cache-control", "private")],
            "cookie": [("set-cookie", "a=b")],
            "vary": [("vary", "X-Shop")],
        }[kind]

    @rule(seconds=st.sampled_from([0.5, 30.0, 100.0, 600.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(url=st.sampled_from(URLS), what=st.sampled_from(["url", "site", "all"]))
    def invalidate(self, url: str, what: str) -> None:
        site = SITES.of(url.split("/")[2])
        signal = {"url": Invalidate(url=url), "site": Invalidate(site=site), "all": Invalidate()}[what]
        self.now += 1
        for worker in self.workers:
            self.runner.run(worker.invalidate(signal))
        for each in URLS:
            if what == "all" or each == url or (what == "site" and SITES.of(each.split("/")[2]) == site):
                self.dropped[each] = self.now

    @invariant()
    def within_the_limits(self) -> None:
        for memory in self.memories:
            stats = memory.stats()
            assert 0 <= stats.bytes <= NEAR
            assert (stats.bytes == 0) == (stats.pages == 0)
        kept = sum(path.stat().st_size for path in Path(self.folder.name).glob("*/*"))
        assert kept <= FAR

    def teardown(self) -> None:
        for worker in self.workers:
            self.runner.run(worker.stop())
        self.runner.run(self.shared.stop())
        self.runner.close()
        self.folder.cleanup()


CacheMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=50, deadline=None)
TestCache = CacheMachine.TestCase
