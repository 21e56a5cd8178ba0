"""The cache in front of the real client and a real site: what is served, to whom, and what the site is asked."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.cache.invalidation import invalidation_signals
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.cache.redis import RedisPages
from scrapeyard.engines.cache.stage import Cached
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.stage import Fetch, FetchContext
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy, Invalidate, Scraper, ScraperRef
from scrapeyard.queues import messages
from scrapeyard.queues.redis.queue import RedisQueue
from scrapeyard.settings import CacheSettings, HttpSettings
from tests.leaks import PATIENCE
from tests.sites.site import Answer, Asked, Site, page, redirect
from tests.stages import context_of

MB = 2**20
FOREVER = 3600.0
"""Longer than any test lasts: where a busy machine must not change what becomes of a page."""
HOUR = Caller(policy=FetchPolicy(max_age_seconds=3600))


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def scraper(name: str, *hosts: str) -> Scraper:
    return Scraper(ref=ScraperRef(id=f"shop/{name}", version="1.0.0"), folder=None, allowed_hosts=hosts)


def by(name: str, *hosts: str, **policy: Any) -> Caller:
    return Caller(scraper=scraper(name, *hosts), policy=FetchPolicy(**{"max_age_seconds": 3600, **policy}))


def counting(**headers: str) -> Answer:
    """Answers 1, 2, 3 …"""
    count = 0

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await page(str(count).encode(), **{"content_type": "text/html", **headers})(asked, writer)

    return answer


class Worker(Cached):
    """Asked as the engine is."""

    async def __call__(self, request: FetchRequest, caller: Caller) -> FetchResponse:
        return await super().__call__(context_of(request, caller))


class Stand:
    """A site, the engine, and workers in front of it."""

    def __init__(self, site: Site, engine: WreqEngine, stack: AsyncExitStack, folder: Path) -> None:
        self.site = site
        self.clock = Clock()
        self.inner: Fetch = engine
        self._stack = stack
        self._folder = folder

    async def worker(self, shared: PageStore | None = None, inner: Fetch | None = None, **settings: Any) -> Worker:
        if shared is None:
            folder = self._folder / f"pages{len(list(self._folder.iterdir()))}"
            folder.mkdir()
            shared = DiskPages(folder, limit_bytes=MB, max_page_bytes=MB, clock=self.clock)
        await shared.start()
        self._stack.push_async_callback(shared.stop)
        self.memory = MemoryPages(MB, self.clock)
        given = CacheSettings(**settings)
        cached = Worker(inner or self.inner, self.memory, shared, given, clock=self.clock)
        cached._shared._seconds = FOREVER
        self._stack.push_async_callback(cached.stop)
        return cached

    def get(self, path: str, **more: Any) -> FetchRequest:
        return FetchRequest(url=self.site.url(path), **more)


@pytest.fixture
async def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    """However slow the machine is: nobody gives up waiting for the shared tier, another worker or the broker."""
    for name in (
        "stage.CLAIM_SECONDS",
        "stage.OTHERS_SECONDS",
        "shared.FLUSH_SECONDS",
        "invalidation._PATIENCE_SECONDS",
        "redis.ANSWER_SECONDS",
    ):
        monkeypatch.setattr(f"scrapeyard.engines.cache.{name}", FOREVER)
    patient = {"connect_seconds": PATIENCE, "read_seconds": PATIENCE, "total_seconds": PATIENCE}
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(Site())
        site.routes["/count"] = counting()
        engine = WreqEngine(HttpSettings(allow_private=True, profile="none", **patient))
        await engine.start()
        stack.push_async_callback(engine.stop)
        yield Stand(site, engine, stack, tmp_path)


async def test_a_kept_page_serves_as_it_was(stand: Stand) -> None:
    stand.site.routes["/old"] = redirect("/count")
    cached = await stand.worker()
    first = await cached(stand.get("/old"), HOUR)
    stand.clock.now += 100
    again = await cached(stand.get("/old#part"), HOUR)
    assert first.age_seconds is None
    assert first.bytes_received > 0
    assert again.age_seconds == pytest.approx(100, abs=2)
    assert (again.bytes_received, again.way) == (0, "cache")
    fields = ("url", "status", "headers", "body", "encoding", "redirects")
    assert [getattr(again, name) for name in fields] == [getattr(first, name) for name in fields]
    assert len(stand.site.asked) == 2


@pytest.mark.parametrize("max_age", [0, 50])
async def test_a_page_older_than_asked_is_fetched_anew(stand: Stand, max_age: float) -> None:
    cached = await stand.worker()
    await cached(stand.get("/count"), HOUR)
    stand.clock.now += 51
    assert (await cached(stand.get("/count", max_age_seconds=max_age), HOUR)).body == b"2"
    assert (await cached(stand.get("/count"), HOUR)).body == b"2"


async def test_without_a_max_age_the_cache_has_no_part(stand: Stand) -> None:
    cached = await stand.worker()
    answers = [await cached(stand.get("/count"), Caller()) for _ in range(2)]
    assert [each.body for each in answers] == [b"1", b"2"]
    assert stand.memory.stats().pages == 0
    off = Caller(policy=FetchPolicy(max_age_seconds=60, cache="off"))
    assert [(await cached(stand.get("/count"), off)).body for _ in range(2)] == [b"3", b"4"]


async def test_the_setting_counts_where_nobody_says(stand: Stand) -> None:
    cached = await stand.worker(max_age_seconds=60)
    assert [(await cached(stand.get("/count"), Caller())).body for _ in range(2)] == [b"1", b"1"]
    assert (await cached(stand.get("/count", max_age_seconds=0), Caller())).body == b"2"


async def test_pages_are_told_apart_by_what_matters(stand: Stand) -> None:
    cached = await stand.worker()
    requests = [
        (stand.get("/count"), HOUR),
        (stand.get("/count?a=1"), HOUR),
        (stand.get("/count", method="HEAD"), HOUR),
        (stand.get("/count", follow_redirects=False), HOUR),
        (stand.get("/count", headers={"Accept-Language": "ko"}), HOUR),
        (stand.get("/count", headers={"Cookie": "a=1"}), HOUR),
        (stand.get("/count", headers={"authorization": "Basic x"}), HOUR),
        (stand.get("/count"), Caller(policy=FetchPolicy(max_age_seconds=60, country="de"))),
        (stand.get("/count", method="POST", body=b"q=1", max_age_seconds=60), HOUR),
        (stand.get("/count", method="POST", body=b"q=2", max_age_seconds=60), HOUR),
    ]
    for count in (len(requests), len(requests)):
        for request, caller in requests:
            await cached(request, caller)
        assert len(stand.site.asked) == count


async def test_a_post_is_kept_only_when_it_says_so_itself(stand: Stand) -> None:
    cached = await stand.worker()
    for method in ("POST", "PUT"):
        for _ in range(2):
            await cached(stand.get("/count", method=method, body=b"x"), HOUR)
    assert len(stand.site.asked) == 4


async def test_a_conditional_request_goes_to_the_site(stand: Stand) -> None:
    cached = await stand.worker()
    for name in ("Range", "if-none-match"):
        for _ in range(2):
            await cached(stand.get("/count", headers={name: "bytes=0-1"}), HOUR)
    assert len(stand.site.asked) == 4


@pytest.mark.parametrize(
    ("request_more", "response_headers"),
    [
        ({"headers": {"Cookie": "who=me"}}, {}),
        ({"headers": {"Authorization": "Bearer me"}}, {}),
        ({"headers": {"Accept-Language": "ko"}}, {}),
        ({}, {"set_cookie": "who=you"}),
        ({}, {"cache_control": "private, max-age=60"}),
    ],
)
async def test_a_private_page_is_its_scrapers_own(
    stand: Stand, request_more: dict[str, Any], response_headers: dict[str, str]
) -> None:
    stand.site.routes["/mine"] = counting(**response_headers)
    cached = await stand.worker()
    request = stand.get("/mine", **request_more)
    one, other = by("one"), by("other")
    bodies = [(await cached(request, who)).body for who in (one, other, one, other, HOUR)]
    assert bodies == [b"1", b"2", b"1", b"2", b"3"]


async def test_a_sessions_page_is_its_own(stand: Stand) -> None:
    asked: list[str] = []

    async def inner(context: FetchContext) -> FetchResponse:
        asked.append(context.request.session)
        return await stand.inner(replace(context, request=replace(context.request, session="")))

    cached = await stand.worker(inner=inner)
    for session in ("a", "b", "", "a", "b"):
        await cached(stand.get("/count", session=session), by("one"))
    assert asked == ["a", "b", ""]


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "User-Agent", "Referer"])
async def test_a_page_asked_for_with_a_header_serves_nobody_without_it(stand: Stand, header: str) -> None:
    """The site answers to the header and does not say so in Vary."""

    async def reflecting(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await page(asked.headers.get(header.lower(), "").encode())(asked, writer)

    stand.site.routes["/reflects"] = reflecting
    cached = await stand.worker()
    bad = await cached(stand.get("/reflects", headers={header: "evil.example"}), HOUR)
    good = await cached(stand.get("/reflects"), HOUR)
    again = await cached(stand.get("/reflects", headers={header.lower(): "evil.example"}), HOUR)
    assert (bad.body, again.body, again.way) == (b"evil.example", b"evil.example", "cache")
    assert b"evil" not in good.body


async def test_answers_that_vary_are_kept_apart(stand: Stand) -> None:
    stand.site.routes["/vary"] = counting(vary="X-Shop, Accept-Encoding")
    cached = await stand.worker()
    bodies = [
        (await cached(stand.get("/vary", headers=headers), HOUR)).body
        for headers in ({"X-Shop": "a"}, {"x-shop": "b"}, {"x-SHOP": "a"}, {"X-Shop": "b"}, {}, {})
    ]
    assert bodies == [b"1", b"2", b"1", b"2", b"3", b"3"]


@pytest.mark.parametrize(
    ("status", "headers", "kept"),
    [
        (200, {}, True),
        (204, {}, True),
        (404, {}, True),
        (500, {}, False),
        (403, {}, False),
        (429, {}, False),
        (200, {"vary": "*"}, False),
        (200, {"content_type": "image/png"}, False),
        (200, {"cache_control": "no-store"}, True),
    ],
)
async def test_which_answers_are_kept(stand: Stand, status: int, headers: dict[str, str], kept: bool) -> None:
    stand.site.routes["/page"] = page(b"" if status == 204 else b"x", status=status, **headers)
    cached = await stand.worker(ttl_seconds=("image/*=0", "*/*=60"))
    for _ in range(2):
        await cached(stand.get("/page"), HOUR)
    assert len(stand.site.asked) == (1 if kept else 2)


@pytest.mark.parametrize(
    ("said", "asked_by_calls"),
    [("no-store", 1), ("no-cache", 0), ("Private, Max-Age=0", 0), ("no-cache, max-age=600", 0)],
)
async def test_a_site_that_wants_to_be_asked_is_asked_unless_the_call_wants_kept_pages(
    stand: Stand, said: str, asked_by_calls: int
) -> None:
    stand.site.routes["/page"] = page(b"x", cache_control=said)
    cached = await stand.worker(max_age_seconds=60)
    for _ in range(2):
        await cached(stand.get("/page"), Caller())
    assert len(stand.site.asked) == 2
    for _ in range(2):
        await cached(stand.get("/page"), HOUR)
    assert len(stand.site.asked) == 2 + asked_by_calls
    await cached(stand.get("/page"), Caller())
    assert len(stand.site.asked) == 3 + asked_by_calls


async def test_a_page_that_may_be_kept_is_kept_by_the_setting_alone(stand: Stand) -> None:
    stand.site.routes["/page"] = page(b"x", cache_control="public, max-age=10, must-revalidate")
    cached = await stand.worker(max_age_seconds=60)
    for _ in range(2):
        await cached(stand.get("/page"), Caller())
    assert len(stand.site.asked) == 1


@pytest.mark.parametrize("mode", ["through", "back", "around"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_request_that_changes_a_page_forgets_it(stand: Stand, method: str, mode: str) -> None:
    stand.site.routes["/cart"] = counting()
    stand.site.routes["/other"] = counting()
    cached = await stand.worker(mode=mode)
    for path in ("/cart", "/other"):
        await cached(stand.get(path), HOUR)
    assert (await cached(stand.get("/cart", method=method, body=b"add=1"), HOUR)).body == b"2"
    assert (await cached(stand.get("/cart"), HOUR)).body == b"3"
    assert (await cached(stand.get("/other"), HOUR)).body == b"1"


async def test_a_change_forgets_what_only_a_single_request_had_kept(stand: Stand) -> None:
    stand.site.routes["/cart"] = counting()
    cached = await stand.worker()
    await cached(stand.get("/cart", max_age_seconds=600), Caller())
    await cached(stand.get("/cart", method="POST", body=b"add=1"), Caller())
    assert (await cached(stand.get("/cart", max_age_seconds=600), Caller())).body == b"3"


async def test_a_change_that_fails_forgets_nothing(stand: Stand) -> None:
    cached = await stand.worker()
    stand.site.routes["/cart"] = page(b"1")
    await cached(stand.get("/cart"), HOUR)
    stand.site.routes["/cart"] = page(b"no", status=500)
    await cached(stand.get("/cart", method="POST", body=b"add=1"), HOUR)
    assert (await cached(stand.get("/cart"), HOUR)).body == b"1"


async def test_a_missing_page_is_believed_for_a_minute(stand: Stand) -> None:
    cached = await stand.worker()
    await cached(stand.get("/nowhere"), HOUR)
    stand.clock.now += 59
    await cached(stand.get("/nowhere"), HOUR)
    assert len(stand.site.asked) == 1
    stand.clock.now += 2
    await cached(stand.get("/nowhere"), HOUR)
    assert len(stand.site.asked) == 2


async def test_a_large_page_is_not_kept(stand: Stand) -> None:
    stand.site.routes["/large"] = page(b"x" * 2000)
    cached = await stand.worker(max_page_mb=0.001)
    for _ in range(2):
        await cached(stand.get("/large"), HOUR)
    assert len(stand.site.asked) == 2


@pytest.mark.parametrize("validator", [{"etag": '"one"'}, {"last_modified": "Sat, 14 Nov 2026 10:00:00 GMT"}])
async def test_an_old_page_is_confirmed_by_the_site(stand: Stand, validator: dict[str, str]) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        known = asked.headers.get("if-none-match") or asked.headers.get("if-modified-since")
        same = known is not None and known in validator.values()
        more = {"x_turn": str(len(stand.site.asked)), **validator}
        await page(b"" if same else b"whole", status=304 if same else 200, content_type="text/html", **more)(
            asked, writer
        )

    stand.site.routes["/tagged"] = answer
    cached = await stand.worker()
    first = await cached(stand.get("/tagged"), HOUR)
    stand.clock.now += 200
    recent = Caller(policy=FetchPolicy(max_age_seconds=100))
    again = await cached(stand.get("/tagged"), recent)
    assert (again.status, again.body, again.age_seconds) == (200, b"whole", None)
    assert dict(again.headers)["x-turn"] == "2"
    assert dict(again.headers)["content-type"] == "text/html"
    assert again.bytes_received < first.bytes_received
    stand.clock.now += 50
    served = await cached(stand.get("/tagged"), recent)
    assert (served.body, served.age_seconds) == (b"whole", pytest.approx(50, abs=2))
    assert len(stand.site.asked) == 2


async def test_a_page_that_changed_replaces_the_old_one(stand: Stand) -> None:
    stand.site.routes["/tagged"] = page(b"old", etag='"1"')
    cached = await stand.worker()
    await cached(stand.get("/tagged"), HOUR)
    stand.site.routes["/tagged"] = page(b"new", etag='"2"')
    stand.clock.now += 10
    assert (await cached(stand.get("/tagged", max_age_seconds=5), HOUR)).body == b"new"
    assert (await cached(stand.get("/tagged"), HOUR)).body == b"new"


async def test_a_confirmation_of_another_page_is_not_believed(stand: Stand) -> None:
    stand.site.routes["/tagged"] = page(b"old", etag='"1"')
    cached = await stand.worker()
    await cached(stand.get("/tagged"), HOUR)
    stand.site.routes["/tagged"] = redirect("/moved")

    async def moved(asked: Asked, writer: asyncio.StreamWriter) -> None:
        same = "if-none-match" in asked.headers
        await page(b"" if same else b"moved", status=304 if same else 200, etag='"1"')(asked, writer)

    stand.site.routes["/moved"] = moved
    stand.clock.now += 10
    assert (await cached(stand.get("/tagged", max_age_seconds=5), HOUR)).body == b"moved"


async def test_a_kept_page_leads_round_no_limit_of_a_scraper(stand: Stand) -> None:
    stand.site.routes["/away"] = redirect(stand.site.url("/count", host="localhost"))
    cached = await stand.worker()
    await cached(stand.get("/count"), HOUR)
    await cached(stand.get("/away"), HOUR)
    assert (await cached(stand.get("/count"), by("in", "127.0.0.1"))).way == "cache"
    for path, hosts in (("/count", ("other.example",)), ("/away", ("127.0.0.1",))):
        with pytest.raises(FetchFailed) as failed:
            await cached(stand.get(path), by("out", *hosts))
        assert failed.value.reason is ExitReason.FETCH_NOT_ALLOWED
    stand.site.routes["/count"] = page(b"0123456789")
    await cached(stand.get("/count", max_age_seconds=0), HOUR)
    with pytest.raises(FetchFailed) as failed:
        await cached(stand.get("/count", max_bytes=5), HOUR)
    assert failed.value.reason is ExitReason.FETCH_TOO_LARGE


class Gate:
    """A page that is answered when the test says so."""

    def __init__(self, answer: Answer) -> None:
        self.open = asyncio.Event()
        self._answer = answer

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        await self._answer(asked, writer)


class TestFlights:
    """Equal requests in flight."""

    async def test_equal_requests_become_one(self, stand: Stand) -> None:
        gate = stand.site.routes["/slow"] = Gate(counting())
        cached = await stand.worker()
        tasks = [asyncio.create_task(cached(stand.get("/slow"), HOUR)) for _ in range(50)]
        await stand.site.until(lambda: len(stand.site.asked) == 1)
        gate.open.set()
        answers = await asyncio.gather(*tasks)
        assert {each.body for each in answers} == {b"1"}
        assert sum(each.bytes_received > 0 for each in answers) == 1
        assert sum(each.age_seconds is not None for each in answers) == 49
        assert len(stand.site.asked) == 1

    async def test_unequal_requests_do_not(self, stand: Stand) -> None:
        gate = stand.site.routes["/slow"] = Gate(counting(set_cookie="a=1"))
        cached = await stand.worker()
        work = [
            (stand.get("/slow"), HOUR),
            (stand.get("/slow"), by("one")),
            (stand.get("/slow"), by("other")),
            (stand.get("/slow", headers={"X-A": "1"}), HOUR),
            (stand.get("/slow", max_age_seconds=0), HOUR),
            (stand.get("/slow"), Caller()),
            (stand.get("/slow"), Caller()),
        ]
        tasks = [asyncio.create_task(cached(*each)) for each in work]
        await stand.site.until(lambda: len(stand.site.asked) == len(work))
        gate.open.set()
        assert len({each.body for each in await asyncio.gather(*tasks)}) == len(work)

    async def test_a_cancelled_first_caller_leaves_the_others_their_page(self, stand: Stand) -> None:
        gate = stand.site.routes["/slow"] = Gate(counting())
        cached = await stand.worker()
        first = asyncio.create_task(cached(stand.get("/slow"), HOUR))
        await stand.site.until(lambda: len(stand.site.asked) == 1)
        others = [asyncio.create_task(cached(stand.get("/slow"), HOUR)) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()
        await stand.site.until(lambda: len(stand.site.asked) == 2)
        gate.open.set()
        assert len({each.body for each in await asyncio.gather(*others)}) == 1
        assert len(stand.site.asked) == 2
        assert first.cancelled()

    async def test_a_cancelled_follower_leaves_the_first_its_page(self, stand: Stand) -> None:
        gate = stand.site.routes["/slow"] = Gate(counting())
        cached = await stand.worker()
        first, second = (asyncio.create_task(cached(stand.get("/slow"), HOUR)) for _ in range(2))
        await stand.site.until(lambda: len(stand.site.asked) == 1)
        second.cancel()
        gate.open.set()
        assert (await first).body == b"1"

    async def test_the_sites_failure_is_everybodys(self, stand: Stand) -> None:
        async def fail(asked: Asked, writer: asyncio.StreamWriter) -> None:
            writer.transport.abort()

        gate = stand.site.routes["/slow"] = Gate(fail)
        cached = await stand.worker()
        tasks = [asyncio.create_task(cached(stand.get("/slow", method="HEAD"), HOUR)) for _ in range(5)]
        await stand.site.until(lambda: len(stand.site.asked) == 1)
        gate.open.set()
        failures = await asyncio.gather(*tasks, return_exceptions=True)
        assert len({id(each) for each in failures}) == 5
        assert all(isinstance(each, FetchFailed) for each in failures)
        asked = len(stand.site.asked)
        assert asked <= 2

    async def test_a_failure_of_the_first_runs_own_is_its_own(self, stand: Stand) -> None:
        began = asyncio.Event()

        async def inner(context: FetchContext) -> FetchResponse:
            if context.caller.run_id == "poor":
                began.set()
                await asyncio.sleep(0)
                raise FetchFailed(ExitReason.FETCH_BUDGET, "used up")
            return await stand.inner(context)

        cached = await stand.worker(inner=inner)
        poor = asyncio.create_task(cached(stand.get("/count"), Caller(run_id="poor", policy=HOUR.policy)))
        await began.wait()
        rich = asyncio.create_task(cached(stand.get("/count"), Caller(run_id="rich", policy=HOUR.policy)))
        with pytest.raises(FetchFailed):
            await poor
        assert (await rich).body == b"1"


class TestModes:
    """Where pages go."""

    async def test_through_keeps_here_and_shared_before_the_answer(self, stand: Stand, tmp_path: Path) -> None:
        shared = DiskPages(tmp_path / "s", limit_bytes=MB, max_page_bytes=MB, clock=stand.clock)
        cached = await stand.worker(shared)
        await cached(stand.get("/count"), by("a", cache="through"))
        assert (stand.memory.stats().pages, (await shared.stats()).pages) == (1, 1)

    async def test_around_keeps_shared_only(self, stand: Stand, tmp_path: Path) -> None:
        shared = DiskPages(tmp_path / "s", limit_bytes=MB, max_page_bytes=MB, clock=stand.clock)
        cached = await stand.worker(shared)
        bodies = [(await cached(stand.get("/count"), by("a", cache="around"))).body for _ in range(2)]
        assert bodies == [b"1", b"1"]
        assert (stand.memory.stats().pages, (await shared.stats()).pages) == (0, 1)

    async def test_back_keeps_here_now_and_shared_by_the_end(self, stand: Stand, tmp_path: Path) -> None:
        hold = asyncio.Event()

        class Slow(DiskPages):
            async def put(self, *words: Any) -> None:
                await hold.wait()
                await super().put(*words)

        shared = Slow(tmp_path / "s", limit_bytes=MB, max_page_bytes=MB, clock=stand.clock)
        cached = await stand.worker(shared)
        await cached(stand.get("/count"), by("a", cache="back"))
        await cached(stand.get("/count?2"), by("a", cache="back"))
        assert (stand.memory.stats().pages, (await shared.stats()).pages) == (2, 0)
        hold.set()
        await cached.stop()
        assert (await shared.stats()).pages == 2

    async def test_a_shared_page_comes_near(self, stand: Stand, tmp_path: Path) -> None:
        shared = DiskPages(tmp_path / "s", limit_bytes=MB, max_page_bytes=MB, clock=stand.clock)
        await (await stand.worker(shared))(stand.get("/count"), HOUR)
        cached = await stand.worker(shared)
        answers = [await cached(stand.get("/count"), HOUR) for _ in range(2)]
        assert [each.way for each in answers] == ["cache", "cache"]
        assert ((await shared.stats()).hits, stand.memory.stats().hits) == (1, 1)


def redis_pages(url: str, clock: Callable[[], float] = time.time, **more: Any) -> RedisPages:
    return RedisPages(url, limit_bytes=10 * MB, max_page_bytes=MB, clock=clock, **more)


class TestWorkers:
    """Two workers on one Redis."""

    async def test_what_one_fetched_serves_the_other(self, stand: Stand, redis_url: str) -> None:
        one = await stand.worker(redis_pages(redis_url, stand.clock))
        other = await stand.worker(redis_pages(redis_url, stand.clock))
        stand.site.routes["/mine"] = counting(set_cookie="a=1", vary="X-Shop")
        assert (await one(stand.get("/count"), HOUR)).body == b"1"
        assert (await other(stand.get("/count"), HOUR)).way == "cache"
        assert (await one(stand.get("/mine"), by("a"))).body == b"1"
        assert (await other(stand.get("/mine"), by("b"))).body == b"2"
        assert (await other(stand.get("/mine"), by("a"))).body == b"1"

    async def test_equal_requests_of_both_become_one(self, stand: Stand, redis_url: str) -> None:
        gate = stand.site.routes["/slow"] = Gate(counting())
        workers = [await stand.worker(redis_pages(redis_url, stand.clock)) for _ in range(2)]
        tasks = [asyncio.create_task(worker(stand.get("/slow"), HOUR)) for worker in workers for _ in range(5)]
        await stand.site.until(lambda: len(stand.site.asked) == 1)
        gate.open.set()
        assert {each.body for each in await asyncio.gather(*tasks)} == {b"1"}
        assert len(stand.site.asked) == 1

    async def test_one_that_fails_lets_the_other_try(self, stand: Stand, redis_url: str) -> None:
        began, fail = asyncio.Event(), asyncio.Event()

        async def failing(context: FetchContext) -> FetchResponse:
            began.set()
            await fail.wait()
            raise FetchFailed(ExitReason.FETCH_CONNECT, "no")

        one = await stand.worker(redis_pages(redis_url, stand.clock), failing)
        other = await stand.worker(redis_pages(redis_url, stand.clock))
        first = asyncio.create_task(one(stand.get("/count"), HOUR))
        await began.wait()
        second = asyncio.create_task(other(stand.get("/count"), HOUR))
        fail.set()
        assert (await second).body == b"1"
        with pytest.raises(FetchFailed):
            await first

    @pytest.mark.parametrize("what", ["url", "site", "all"])
    async def test_an_invalidation_reaches_both_within_a_second(self, stand: Stand, redis_url: str, what: str) -> None:
        async with AsyncExitStack() as stack:
            workers, forgot = [], asyncio.Queue[Invalidate]()
            for _ in range(2):
                queue = RedisQueue(redis_url, patience_seconds=PATIENCE)
                await queue.start()
                stack.push_async_callback(queue.stop)
                worker = await stand.worker(redis_pages(redis_url, stand.clock))
                ear = invalidation_signals(queue, _telling(worker, forgot))
                await ear.start()
                stack.push_async_callback(ear.stop)
                workers.append(worker)
            for worker in workers:
                assert (await worker(stand.get("/count"), HOUR)).body == b"1"
            signal = {
                "url": Invalidate(url=stand.site.url("/count")),
                "site": Invalidate(site="127.0.0.1"),
                "all": Invalidate(),
            }[what]
            async with asyncio.timeout(PATIENCE):  # it is told, and nobody would find out by itself later
                await queue.send(messages.SIGNALS, messages.encode(signal))
                assert [await forgot.get(), await forgot.get()] == [signal, signal]
            assert [(await worker(stand.get("/count"), HOUR)).body for worker in workers] == [b"2", b"2"]

    async def test_what_is_in_flight_when_it_is_invalidated_is_not_kept(self, stand: Stand, redis_url: str) -> None:
        gate = stand.site.routes["/slow"] = Gate(counting())
        worker = await stand.worker(redis_pages(redis_url, stand.clock))
        first = asyncio.create_task(worker(stand.get("/slow"), HOUR))
        await stand.site.until(lambda: len(stand.site.asked) == 1)
        await worker.invalidate(Invalidate(url=stand.site.url("/slow")))
        second = asyncio.create_task(worker(stand.get("/slow", max_age_seconds=0), HOUR))
        await stand.site.until(lambda: len(stand.site.asked) == 2)
        gate.open.set()
        bodies = {(await first).body, (await second).body}
        assert bodies == {b"1", b"2"}
        assert (await worker(stand.get("/slow"), HOUR)).body == (await second).body

    async def test_redis_away_is_no_reason_to_wait(self, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        nobody = redis_pages("redis://127.0.0.1:1/0", stand.clock)
        with monkeypatch.context() as hasty:
            hasty.setattr("scrapeyard.engines.cache.redis.ANSWER_SECONDS", 0.05)
            worker = await stand.worker(nobody)
        async with asyncio.timeout(PATIENCE):  # one wait for an answer would last far longer
            assert (await worker(stand.get("/count"), HOUR)).body == b"1"
            for number in range(10):
                await worker(stand.get(f"/count?{number}"), HOUR)
            assert (await worker(stand.get("/count"), HOUR)).body == b"1"


def _telling(worker: Cached, forgot: "asyncio.Queue[Invalidate]") -> Callable[[Invalidate], Awaitable[None]]:
    async def obey(signal: Invalidate) -> None:
        await worker.invalidate(signal)
        await forgot.put(signal)

    return obey
