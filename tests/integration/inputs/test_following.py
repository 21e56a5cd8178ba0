"""Links that are followed: depth by depth, each page once, never beyond the limits, whatever crashes."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import copy
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from scrapeyard.builtin import PAGE
from scrapeyard.errors import StoreUnavailable
from scrapeyard.inputs.follower import Following
from scrapeyard.inputs.source import FollowSource, Shape, UrlChoice, source_of
from scrapeyard.model import ExitReason, Limits, new_id
from scrapeyard.model.job import Batch, ItemOutcome, Job, JobStatus, NewItem
from scrapeyard.repository.catalogue.catalogue import SourcedCatalogue
from scrapeyard.repository.catalogue.loading import LoadTerms
from scrapeyard.store.sql import SqlStore
from tests.integration.intake_stand import SCRAPER, Stand, a_stand
from tests.sites.site import Site, page

HOME = "https://shop.example/"
Web = dict[str, list[str]]


@pytest.fixture
async def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    # rounds are counted here, so a slow machine must not cut them short
    monkeypatch.setattr("scrapeyard.inputs.follower.SLICE_SECONDS", 60.0)
    async with a_stand(tmp_path) as stand:
        yield stand


def reached(web: Web, depth: int) -> set[str]:
    """Every page within so many links of the start."""
    found, edge = {HOME}, [HOME]
    for _ in range(depth):
        edge = [link for page in edge for link in web.get(page, []) if link not in found]
        found.update(edge)
    return found


async def crawl(stand: Stand, job: Job, web: Web, at_once: int = 1000, following: Following | None = None) -> Job:
    following = following or stand.following()
    for _ in range(200):
        await following.run_once()
        ran = await stand.run(job, lambda url: {"links": web.get(url, [])} if url in web else None, at_once)
        now = await stand.job(job)
        if not ran and not now.reading:
            return now
    raise AssertionError("it never ends")


def pages(*names: str) -> list[str]:
    return [HOME + name for name in names]


WEB: Web = {
    HOME: pages("a", "b"),
    HOME + "a": pages("b", "c", ""),
    HOME + "b": pages("d"),
    HOME + "c": pages("e"),
    HOME + "d": pages("e", "f"),
    HOME + "e": [],
    HOME + "f": pages("g"),
}


@pytest.mark.parametrize("depth", range(6))
@pytest.mark.parametrize("at_once", [1, 1000])
async def test_pages_are_found_to_their_depth_and_no_farther(stand: Stand, depth: int, at_once: int) -> None:
    job = await stand.create(FollowSource(start=(HOME,), depth=depth))
    now = await crawl(stand, job, WEB, at_once)
    assert set(await stand.urls(job)) == reached(WEB, depth)
    assert now.counts.total == len(reached(WEB, depth))
    assert now.status is JobStatus.RUNNING
    assert [settled.id for settled in await stand.store.jobs.settled(10)] == [job.id]


async def test_a_job_that_follows_is_not_settled_before_its_links_are_read(stand: Stand) -> None:
    job, following = await stand.create(FollowSource(start=(HOME,), depth=3)), stand.following()
    await following.run_once()
    await stand.run(job, lambda url: {"links": WEB[url]})
    assert await stand.store.jobs.settled(10) == []
    await following.run_once()
    assert (await stand.job(job)).counts.pending == 2


async def test_links_elsewhere_and_those_not_chosen_are_left(stand: Stand) -> None:
    web = {
        HOME: [
            "https://www.shop.example/1",
            "https://other.example/",
            HOME + "x.pdf",
            "mailto:x@shop.example",
            "/",
            "http://[",
        ]
    }
    job = await stand.create(FollowSource(start=(HOME,), choice=UrlChoice(exclude=("**.pdf",))))
    await crawl(stand, job, web)
    assert await stand.urls(job) == [HOME, "https://www.shop.example/1"]


async def test_a_link_that_does_not_fit_is_left_or_fails_the_job(stand: Stand, tmp_path: Path) -> None:
    url = {"type": "string", "maxLength": 100}
    short = msgspec.structs.replace(SCRAPER, input_schema={"type": "object", "properties": {"url": url}})
    stand.catalogue = SourcedCatalogue([], tmp_path / "short", {PAGE: short}, LoadTerms(ceiling=Limits()))
    web = {HOME: [HOME + "a", HOME + "x" * 100]}
    job = await stand.create(FollowSource(start=(HOME,)))
    assert (await crawl(stand, job, web)).status is JobStatus.RUNNING
    assert await stand.urls(job) == pages("", "a")
    whole = await stand.create(FollowSource(start=(HOME,), shape=Shape(bad_rows="reject")))
    now = await crawl(stand, whole, web)
    assert (now.status, now.counts.success, now.counts.total) == (JobStatus.FAILED, 1, 1)
    assert await stand.store.items.recount(whole.id) == now.counts
    assert now.error is not None
    assert HOME + "xxx" in now.error.message
    (told,) = await stand.events(whole, "rows_refused")
    assert (told["count"], "long" in told["first"][0]["reason"]) == (1, True)


async def test_the_limit_is_never_passed(stand: Stand) -> None:
    web = {HOME: pages(*(str(number) for number in range(3000)))}
    job = await stand.create(FollowSource(start=(HOME,), depth=5, limit=1234))
    assert (await crawl(stand, job, web)).counts.total == 1234


async def test_a_page_of_many_links_gives_them_all(stand: Stand) -> None:
    web = {HOME: pages(*(str(number) for number in range(4500)))}
    job = await stand.create(FollowSource(start=(HOME,), limit=10_000))
    assert (await crawl(stand, job, web)).counts.total == 4501


async def test_a_paused_job_finds_and_a_cancelled_one_does_not(stand: Stand) -> None:
    following = stand.following()
    job = await stand.create(FollowSource(start=(HOME,), depth=2))
    await following.run_once()
    await stand.run(job, lambda url: {"links": WEB[url]})
    await stand.store.jobs.set_paused(job.id, True, "by hand", stand.clock())
    await following.run_once()
    now = await stand.job(job)
    assert (now.status, now.counts.total) == (JobStatus.PAUSED, 3)
    await stand.store.jobs.cancel(job.id, False, stand.clock())
    await following.run_once()
    assert (await stand.job(job)).counts.total == 3


async def test_links_in_large_results_are_followed_too(stand: Stand) -> None:
    job, following = await stand.create(FollowSource(start=(HOME,))), stand.following()
    await following.run_once()
    packed = gzip.compress(msgspec.json.encode({"links": pages("a"), "text": "x" * 100_000}))
    await stand.blobs.put("large/result.json", packed, "application/json")
    now, batch = stand.clock(), Batch(id=new_id("batch"), job_id=job.id, left=1, queued_at=stand.clock())
    assert await stand.store.batches.cut(batch, now)
    assert await stand.store.batches.take(batch.id, "w", now, now + 60)
    outcome = ItemOutcome(
        seq=0,
        attempt=1,
        exit_reason=ExitReason.SUCCEEDED,
        result_key="large/result.json",
        started_at=now,
        finished_at=now,
    )
    assert await stand.store.batches.record(batch.id, "w", 0, [outcome], now)
    await following.run_once()
    assert await stand.urls(job) == [HOME, HOME + "a"]


def crashing_store(store: SqlStore, crashes: list[int], *, after: bool) -> SqlStore:
    """A store that fails a chosen call, before or after it was done; everything else is the real one's."""
    calls = count(1)

    def crashing(found: Callable[..., Awaitable[Any]]) -> Any:
        async def call(*args: Any, **more: Any) -> Any:
            crash = next(calls) in crashes
            if crash and not after:
                raise StoreUnavailable("gone")
            answer = await found(*args, **more)
            if crash:
                raise StoreUnavailable("gone")
            return answer

        return call

    broken = copy(store)
    for noun, names in {"items": ("add", "page"), "jobs": ("set_source", "end_reading")}.items():
        part = copy(getattr(store, noun))
        for name in names:
            setattr(part, name, crashing(getattr(part, name)))
        setattr(broken, noun, part)
    return broken


NODES = st.integers(0, 12)
WEBS = st.dictionaries(NODES, st.lists(NODES, max_size=4), max_size=13)


@given(WEBS, st.integers(0, 4), st.lists(st.integers(1, 25), max_size=8), st.booleans(), st.sampled_from([1, 3, 1000]))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_crashes_the_same_pages_are_found(
    stand: Stand, graph: dict[int, list[int]], depth: int, crashes: list[int], after: bool, at_once: int
) -> None:
    def name(node: int) -> str:
        return HOME if node == 0 else f"{HOME}{node}"

    web = {name(node): [name(link) for link in links] for node, links in graph.items()}
    job = await stand.create(FollowSource(start=(HOME,), depth=depth))
    crashing = crashing_store(stand.store, crashes, after=after)

    class Anew:
        """A process that starts again for every round, and so remembers nothing."""

        async def run_once(self) -> None:
            await stand.following(crashing).run_once()

    now = await crawl(stand, job, web, at_once, Anew())  # type: ignore[arg-type]
    assert set(await stand.urls(job)) == reached(web, depth)
    assert now.counts.total == len(reached(web, depth))
    source = source_of(now)
    assert isinstance(source, FollowSource)
    await stand.store.jobs.cancel(job.id, True, stand.clock())


async def test_a_page_that_failed_is_a_gap_of_the_crawl(stand: Stand) -> None:
    web = {page: links for page, links in WEB.items() if page != HOME + "b"}
    job = await crawl(stand, await stand.create(FollowSource(start=(HOME,), depth=3)), web)
    assert job.gaps == ("1 page failed, and the links there could not be followed",)
    deepest = {page: links for page, links in WEB.items() if page not in pages("c", "d")}
    job = await crawl(stand, await stand.create(FollowSource(start=(HOME,), depth=2)), deepest)
    assert job.gaps == ()


async def test_a_limit_is_a_gap_of_the_crawl(stand: Stand) -> None:
    job = await crawl(stand, await stand.create(FollowSource(start=(HOME,), depth=3, limit=3)), WEB)
    assert job.gaps == ("the limit of 3 pages was reached, and links beyond it were not followed",)
    job = await crawl(stand, await stand.create(FollowSource(start=(HOME,), depth=3, limit=2)), WEB)
    assert job.gaps == ("the limit of 2 pages was reached, and at least 1 link beyond it was not followed",)


@pytest.mark.parametrize("at_once", [1, 1000])
@pytest.mark.parametrize(
    ("limit", "left", "told"),
    [
        (1, 2, "the limit of 1 pages was reached, and 2 links beyond it were not followed"),
        (3, 2, "the limit of 3 pages was reached, and 2 links beyond it were not followed"),
        (6, 1, "the limit of 6 pages was reached, and 1 link beyond it was not followed"),
    ],
)
async def test_the_links_beyond_a_limit_are_counted(
    stand: Stand, limit: int, left: int, told: str, at_once: int
) -> None:
    source = FollowSource(start=(HOME,), depth=9, limit=limit, count_beyond=True)
    job = await crawl(stand, await stand.create(source), WEB, at_once)
    assert (job.counts.total, job.gaps, job.source["found"]) == (limit, (told,), {"beyond_limit": left})


async def test_a_limit_that_left_nothing_out_is_no_gap(stand: Stand) -> None:
    web = {page: links if page != HOME + "f" else [] for page, links in WEB.items()}
    source = FollowSource(start=(HOME,), depth=9, limit=len(web), count_beyond=True)
    job = await crawl(stand, await stand.create(source), web)
    assert (job.counts.total, job.gaps, job.source["found"]) == (len(web), (), {"beyond_limit": 0})


async def test_links_of_pages_that_failed_are_not_known(stand: Stand) -> None:
    web = {page: links for page, links in WEB.items() if page != HOME + "b"}
    source = FollowSource(start=(HOME,), depth=9, limit=3, count_beyond=True)
    job = await crawl(stand, await stand.create(source), web)
    assert "the limit of 3 pages was reached, and at least 1 link beyond it was not followed" in job.gaps


async def test_links_beyond_a_limit_are_counted_once_whoever_leads(stand: Stand) -> None:
    web = {**WEB, HOME: [*WEB[HOME], HOME + "a?utm_source=1"], HOME + "a": [*WEB[HOME + "a"], HOME + "c?utm_source=2"]}
    source = FollowSource(start=(HOME,), depth=9, limit=3, count_beyond=True, query="clean")
    job = await stand.create(source)
    for _ in range(20):
        await stand.following().run_once()  # each has nothing in memory
        await stand.run(job, lambda url: {"links": web[url]}, 1)
        if not (await stand.job(job)).reading:
            break
    assert (await stand.job(job)).source["found"] == {"beyond_limit": 2}


async def test_items_know_where_they_were_found(stand: Stand) -> None:
    job = await stand.create(FollowSource(start=(HOME,), depth=2))
    await crawl(stand, job, WEB)
    found = {item.key: item for item in await stand.items(job)}
    told = sorted((item.depth, item.referrer.removeprefix(HOME)) for item in found.values())
    assert told == [(0, ""), (1, ""), (1, ""), (2, "a"), (2, "b")]


@pytest.mark.parametrize("nth", range(5))
async def test_a_crawl_cancelled_while_links_are_added_finds_the_same_pages_when_resumed(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    job, following, calls = await stand.create(FollowSource(start=(HOME,), depth=4)), stand.following(), count()
    add = stand.store.items.add

    async def cancelled_before(*given: Any, **more: Any) -> int | None:
        if next(calls) == nth:
            await stand.store.jobs.cancel(job.id, True, 1.0)
        return await add(*given, **more)

    monkeypatch.setattr(stand.store.items, "add", cancelled_before)
    for _ in range(20):
        await following.run_once()
        await stand.run(job, lambda url: {"links": WEB.get(url, [])})
        if (await stand.job(job)).status is JobStatus.CANCELLED:
            await stand.store.jobs.reopen(job.id, 2.0)
            break
    await crawl(stand, job, WEB, following=following)
    assert set(await stand.urls(job)) == reached(WEB, 4)


@pytest.mark.parametrize("restarts", [False, True])
async def test_links_beyond_the_depth_are_counted_once_each(stand: Stand, restarts: bool) -> None:
    web = {HOME: pages("a", "b"), HOME + "a": pages("x", "y", "b"), HOME + "b": pages("x", "z", ""), HOME + "c": []}
    job = await stand.create(FollowSource(start=(HOME,), depth=1, count_beyond=True))
    following = stand.following()
    for _ in range(20):
        await following.run_once()
        following = stand.following() if restarts else following
        await stand.run(job, lambda url: {"links": web.get(url, [])}, 1)
    now = await stand.job(job)
    assert not now.reading
    assert now.source["found"] == {"beyond_depth": 3}
    assert now.gaps == ()


def sitemap(*urls: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>".encode()


async def crawl_with_sitemaps(stand: Stand, job: Job, web: Web) -> Job:
    following = stand.following()
    try:
        for _ in range(20):
            await following.run_once()
            await following.idle()
            await stand.run(job, lambda url: {"links": web.get(url, [])})
            if not (now := await stand.job(job)).reading:
                return now
    finally:
        await following.stop()
    raise AssertionError("it never ends")


async def test_sitemaps_of_the_start_are_read_as_if_it_linked_to_their_pages(stand: Stand) -> None:
    async with Site() as site:
        home = site.url("/")
        listed = sitemap(home + "lonely", home + "a", home + "x.pdf", "https://other.example/")
        site.routes |= {"/robots.txt": page(b"Sitemap: /map.xml"), "/map.xml": page(listed)}
        choice = UrlChoice(exclude=("**.pdf",))
        source = FollowSource(start=(home,), depth=2, sitemap=True, scope="host", choice=choice)
        job = await stand.create(source)
        now = await crawl_with_sitemaps(stand, job, {home: [home + "a"], home + "lonely": [home + "deep"]})
    depths = {msgspec.json.decode(item.input)["url"]: item.depth for item in await stand.items(job)}
    assert depths == {home: 0, home + "a": 1, home + "lonely": 1, home + "deep": 2}
    assert (now.source["found"], now.gaps) == ({"sitemap_urls": 2}, ())


async def test_a_site_without_a_sitemap_is_crawled_by_its_links(stand: Stand) -> None:
    async with Site() as site:
        home = site.url("/")
        job = await stand.create(FollowSource(start=(home,), depth=1, sitemap=True))
        now = await crawl_with_sitemaps(stand, job, {home: [home + "a"]})
    assert await stand.urls(job) == [home, home + "a"]
    assert (now.source["found"], now.gaps) == ({"sitemap_urls": 0}, ())


async def test_links_and_sitemaps_read_at_once_keep_the_limit(stand: Stand) -> None:
    """Each of the two counts the items that there are, and then adds: neither may do so between the other's steps."""
    job, following = await stand.create(FollowSource(start=(HOME,), limit=5)), stand.following()
    named = [[NewItem(key=f"{who}{n}", input=Raw(b"{}")) for n in range(4)] for who in ("link", "map")]
    await asyncio.gather(*(following._add(job, items, limit=5) for items in named))
    assert (await stand.job(job)).counts.total == 5
