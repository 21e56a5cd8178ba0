"""robots.txt by policy, fetched by the real client from a real site."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.politeness.policies import SitePolicies
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.engines.robots import copies as robots_copies
from scrapeyard.engines.robots.copies import RobotsCopies
from scrapeyard.engines.robots.stage import Robots
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason, FetchPolicy, Scraper, ScraperRef
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import HttpSettings, SiteSettings
from scrapeyard.store.sql import SqlStore
from tests.sites.site import Answer, Asked, Site, chunks, page, redirect, reset
from tests.stages import context_of

OBEY = Caller(policy=FetchPolicy(robots="obey"))
IGNORE = Caller(policy=FetchPolicy(robots="ignore"))
FORBIDS = page(b"User-agent: *\nDisallow: /no\nCrawl-delay: 2\n", content_type="text/plain")


class Stand:
    """A site, and the stage before the real client."""

    def __init__(self, site: Site, **settings: Any) -> None:
        self.now = 1000.0
        self.site = site
        site.routes |= {"/yes": page(b"yes"), "/no": page(b"no")}
        self.engine = WreqEngine(HttpSettings(allow_private=True, profile="none"))
        store = SqlStore("sqlite:///unused.db")
        self.policies = SitePolicies(SiteSettings(**settings), store.sites, MemoryQueue())
        copies = RobotsCopies(self.engine, "scrapeyard", lambda: self.now)
        self.robots = Robots(self.engine, copies, self.policies)

    async def get(self, path: str, caller: Caller = OBEY) -> FetchResponse:
        return await self.robots(context_of(FetchRequest(url=self.site.url(path)), caller))

    async def refused(self, path: str, caller: Caller = OBEY) -> FetchFailed:
        with pytest.raises(FetchFailed) as caught:
            await self.get(path, caller)
        return caught.value

    def answers(self, answer: Answer) -> None:
        self.site.routes["/robots.txt"] = answer

    @property
    def looks(self) -> int:
        """How often the file was asked for."""
        return sum(asked.path == "/robots.txt" for asked in self.site.asked)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def stand(site: Site) -> AsyncIterator[Stand]:
    stand = Stand(site)
    yield stand
    await stand.robots.stop()
    await stand.engine.stop()


async def test_a_rule_forbids_and_is_named(stand: Stand) -> None:
    stand.answers(FORBIDS)
    assert (await stand.get("/yes")).body == b"yes"
    refusal = await stand.refused("/no")
    assert refusal.reason is ExitReason.FETCH_ROBOTS
    assert "Disallow: /no" in refusal.message
    assert "127.0.0.1" in refusal.message
    assert refusal.details["rule"] == "Disallow: /no"
    assert stand.looks == 1
    assert [asked.path for asked in stand.site.asked] == ["/robots.txt", "/yes"]


async def test_the_call_decides_before_the_setting(site: Site) -> None:
    stand = Stand(site, robots="obey")
    stand.answers(FORBIDS)
    assert (await stand.get("/no", IGNORE)).body == b"no"
    assert stand.looks == 0
    assert (await stand.refused("/no", Caller())).reason is ExitReason.FETCH_ROBOTS
    await stand.engine.stop()


async def test_nothing_is_asked_where_nobody_obeys(stand: Stand) -> None:
    stand.answers(FORBIDS)
    assert (await stand.get("/no", Caller())).body == b"no"
    assert stand.looks == 0


async def test_the_delay_becomes_a_limit_of_the_site(stand: Stand) -> None:
    stand.answers(FORBIDS)
    await stand.get("/yes")
    assert stand.policies.limits("127.0.0.1").crawl_rate == 0.5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_a_file_that_is_not_there_forbids_nothing(stand: Stand, status: int) -> None:
    stand.answers(page(b"User-agent: *\nDisallow: /\n", status=status))
    assert (await stand.get("/no")).body == b"no"
    assert (await stand.get("/yes")).body == b"yes"
    assert stand.looks == 1


@pytest.mark.parametrize("answer", [page(b"", status=500), page(b"", status=503), page(b"", status=429), reset])
async def test_a_file_that_cannot_be_had_forbids_everything_for_a_while(stand: Stand, answer: Answer) -> None:
    stand.answers(answer)
    refusal = await stand.refused("/yes")
    assert refusal.reason is ExitReason.FETCH_SITE_DOWN
    assert refusal.reason.retryable
    assert refusal.details["retry_after"] == pytest.approx(300, abs=1)
    looks = stand.looks
    await stand.refused("/yes")
    assert stand.looks == looks, "not asked again at once"
    stand.answers(FORBIDS)
    stand.now += 301
    assert (await stand.get("/yes")).body == b"yes"


async def test_a_copy_counts_for_a_day_and_on_while_the_file_cannot_be_had(stand: Stand) -> None:
    stand.answers(FORBIDS)
    await stand.get("/yes")
    stand.now += 86_399
    await stand.get("/yes")
    assert stand.looks == 1
    stand.answers(page(b"", status=500))
    stand.now += 2
    assert (await stand.get("/yes")).body == b"yes"
    assert (await stand.refused("/no")).reason is ExitReason.FETCH_ROBOTS
    assert stand.looks == 2
    stand.now += 31 * 86_400
    assert (await stand.refused("/yes")).reason is ExitReason.FETCH_SITE_DOWN


async def test_a_new_file_is_noticed(stand: Stand) -> None:
    stand.answers(FORBIDS)
    await stand.refused("/no")
    stand.answers(page(b"User-agent: *\nDisallow: /yes\n"))
    stand.now += 86_401
    assert (await stand.get("/no")).body == b"no"
    await stand.refused("/yes")
    assert stand.policies.limits("127.0.0.1").crawl_rate == 0


async def test_redirects_of_the_file_are_followed(stand: Stand) -> None:
    stand.answers(redirect("/elsewhere.txt"))
    stand.site.routes["/elsewhere.txt"] = FORBIDS
    await stand.refused("/no")


async def test_redirects_in_a_loop_are_a_file_that_is_not_there(stand: Stand) -> None:
    stand.answers(redirect("/robots.txt"))
    assert (await stand.get("/no")).body == b"no"


async def test_who_asks_at_once_shares_one_fetch(stand: Stand) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slowly(request: Asked, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answer.wait()
        await FORBIDS(request, writer)

    stand.answers(slowly)
    tasks = [asyncio.create_task(stand.get("/yes")) for _ in range(10)]
    await asked.wait()
    tasks[0].cancel()
    answer.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert [result.body for result in results[1:] if isinstance(result, FetchResponse)] == [b"yes"] * 9
    assert stand.looks == 1


async def test_a_file_without_end_is_not_swallowed(stand: Stand) -> None:
    stand.answers(chunks(b"#" * 65_536, 100))
    assert (await stand.refused("/yes")).reason is ExitReason.FETCH_SITE_DOWN


@pytest.mark.parametrize("path", ["/x/../no", "/x/%2e%2e/no", "/./no"])
async def test_dots_in_a_path_lead_round_no_rule(stand: Stand, path: str) -> None:
    stand.answers(FORBIDS)
    assert (await stand.refused(path)).reason is ExitReason.FETCH_ROBOTS


async def test_a_large_file_is_read(stand: Stand) -> None:
    many = b"".join(b"Disallow: /%d/*x$\n" % number for number in range(5000))
    stand.answers(page(b"User-agent: *\n" + many + b"Disallow: /no\n"))
    assert "Disallow: /no" in (await stand.refused("/no")).message
    assert (await stand.get("/yes")).body == b"yes"


async def test_each_origin_has_its_own(stand: Stand) -> None:
    stand.answers(FORBIDS)
    async with Site() as other:
        other.routes["/no"] = page(b"other's")
        await stand.refused("/no")
        answer = await stand.robots(context_of(FetchRequest(url=other.url("/no")), OBEY))
        assert answer.body == b"other's"


async def test_the_hosts_a_scraper_may_reach_do_not_hinder_the_look(stand: Stand) -> None:
    stand.answers(redirect(stand.site.url("/robots-here", host="localhost")))
    stand.site.routes["/robots-here"] = FORBIDS
    scraper = Scraper(
        ref=ScraperRef(id="shop/product", version="1.0.0", digest=""),
        folder=None,
        allowed_hosts=("127.0.0.1",),
    )
    refusal = await stand.refused("/no", Caller(scraper=scraper, policy=FetchPolicy(robots="obey")))
    assert refusal.reason is ExitReason.FETCH_ROBOTS


async def test_a_private_address_is_refused_for_the_file_too(site: Site) -> None:
    engine = WreqEngine(HttpSettings(profile="none"))
    copies = RobotsCopies(engine, "scrapeyard")
    policies = SitePolicies(SiteSettings(), SqlStore("sqlite:///unused.db").sites, MemoryQueue())
    robots = Robots(engine, copies, policies)
    for _ in range(2):
        with pytest.raises(FetchFailed) as caught:
            await robots(context_of(FetchRequest(url=site.url("/yes")), OBEY))
        assert caught.value.reason is ExitReason.FETCH_PRIVATE_ADDRESS
    assert site.asked == []
    await engine.stop()


async def test_copies_are_bounded(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots_copies, "MAX_COPIES", 2)
    sites = [Site() for _ in range(3)]
    for each in sites:
        async with each:
            each.routes |= {"/robots.txt": FORBIDS, "/yes": page(b"yes")}
            await stand.robots(context_of(FetchRequest(url=each.url("/yes")), OBEY))
    assert len(stand.robots._copies._copies) == 2
