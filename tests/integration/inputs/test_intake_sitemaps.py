"""Jobs from sitemaps of a real server: what they lead to, what is broken, and the bounds that nothing passes."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.inputs.sitemaps import SitemapBounds
from scrapeyard.inputs.source import Shape, SitemapSource, UrlChoice, UrlSource
from scrapeyard.model.job import Job, JobStatus
from tests.contract.job_nouns import a_batch
from tests.integration.intake_stand import Stand, a_stand
from tests.leaks import PATIENCE
from tests.sites.site import Asked, Site, chunks, page, reset

SKIP = Shape(bad_rows="skip")


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with a_stand(tmp_path) as stand:
        yield stand


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


def urlset(*entries: str | tuple[str, str]) -> bytes:
    inner = ""
    for entry in entries:
        url, modified = (entry, "") if isinstance(entry, str) else entry
        inner += f"<url><loc>{url}</loc>{f'<lastmod>{modified}</lastmod>' if modified else ''}</url>\n"
    return f"<urlset>{inner}</urlset>".encode()


def index(*entries: str | tuple[str, str]) -> bytes:
    return (
        urlset(*entries)
        .replace(b"url>", b"sitemap>")
        .replace(b"urlset>", b"sitemapindex>")
        .replace(b"sitemapset", b"sitemapindex")
    )


async def read(stand: Stand, source: SitemapSource, bounds: SitemapBounds | None = None) -> Job:
    job = await stand.create(source)
    assert await stand.intake(bounds=bounds).fill(job)
    return await stand.job(job)


async def test_everything_that_a_sitemap_leads_to(stand: Stand, site: Site) -> None:
    site.routes |= {
        "/robots.txt": page(
            f"User-agent: *\nDisallow: /x\nSITEMAP: {site.url('/all.xml')} # ours\nSitemap: /b.txt\n".encode()
        ),
        "/all.xml": page(index(site.url("/a.xml.gz"), site.url("/deep.xml"), site.url("/all.xml"))),
        "/deep.xml": page(index(site.url("/c.xml"))),
        "/a.xml.gz": page(gzip.compress(urlset("https://a.example/1", "https://a.example/2"))),
        "/b.txt": page(b"https://b.example/1\nhttps://a.example/2\n"),
        "/c.xml": page(gzip.compress(urlset("/relative")), content_encoding="gzip"),
    }
    expected = {"https://a.example/1", "https://a.example/2", "https://b.example/1", site.url("/relative")}
    for path in ("/robots.txt", "/"):
        job = await read(stand, SitemapSource(url=site.url(path), shape=SKIP))
        assert job.status is JobStatus.RUNNING
        assert set(await stand.urls(job)) == expected
        assert (job.counts.total, job.skipped_rows) == (4, 1)
    asked = [asked.path for asked in site.asked]
    assert sorted(asked[: len(asked) // 2]) == sorted(site.routes)


async def test_a_site_without_robots_has_its_sitemap_at_the_usual_place(stand: Stand, site: Site) -> None:
    site.routes["/sitemap.xml"] = page(urlset("https://a.example/1"))
    job = await read(stand, SitemapSource(url=site.url("/"), shape=Shape(input={"include": ["links"]})))
    (item,) = await stand.items(job)
    assert bytes(item.input) == b'{"include":["links"],"url":"https://a.example/1"}'


async def test_only_what_is_wanted_is_taken(stand: Stand, site: Site) -> None:
    site.routes |= {
        "/all.xml": page(index((site.url("/old.xml"), "2020-01-01"), site.url("/new.xml"))),
        "/old.xml": page(urlset("https://a.example/p/0")),
        "/new.xml": page(
            urlset(
                ("https://a.example/p/1", "2023-12-31T23:59:59Z"),
                ("https://a.example/p/2", "2024-01-01"),
                "https://a.example/p/3",
                "https://a.example/p/4.pdf",
                "https://a.example/q/5",
                ("https://a.example/p/6", "soon"),
                "https://a.example/p/7",
            )
        ),
    }
    source = SitemapSource(
        url=site.url("/all.xml"),
        choice=UrlChoice(include=("/p/*",), exclude=(r"re:\.pdf$",)),
        modified_since=1704067200.0,
        limit=3,
    )
    job = await read(stand, source)
    assert [url[-1] for url in await stand.urls(job)] == ["2", "3", "6"]
    assert "/old.xml" not in [asked.path for asked in site.asked]


async def test_an_empty_sitemap_is_a_job_without_items(stand: Stand, site: Site) -> None:
    site.routes["/all.xml"] = page(urlset())
    job = await read(stand, SitemapSource(url=site.url("/all.xml")))
    assert (job.status, job.counts.total) == (JobStatus.RUNNING, 0)


async def test_one_broken_file_gives_what_it_held(stand: Stand, site: Site) -> None:
    site.routes |= {
        "/robots.txt": page(f"Sitemap: {site.url('/all.xml')}\nSitemap: //[\n".encode()),
        "/all.xml": page(urlset("https://a.example/1")[:-3]),
    }
    job = await read(stand, SitemapSource(url=site.url("/"), shape=SKIP))
    assert (job.status, job.counts.total, job.skipped_rows) == (JobStatus.RUNNING, 1, 2)


async def test_broken_files_are_left_out_and_told_or_refuse_the_job(stand: Stand, site: Site) -> None:
    names = ("good", "gone", "page", "cut", "torn", "laughs", "gzip")
    site.routes |= {
        "/all.xml": page(index(*(site.url(f"/{name}.xml") for name in names), "ftp://x/y", "javascript:1", "//[")),
        "/good.xml": page(urlset("https://a.example/1", "http://", "https://a.example/2")),
        "/page.xml": page(b"<!doctype html><title>hm</title>"),
        "/cut.xml": page(urlset("https://a.example/3")[:-9]),
        "/torn.xml": reset,
        "/laughs.xml": page(b'<!DOCTYPE x [<!ENTITY a "b">]><urlset/>'),
        "/gzip.xml": page(gzip.compress(urlset("https://a.example/4"))[:-6]),
    }
    job = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=SKIP))
    assert job.status is JobStatus.RUNNING
    assert {"https://a.example/1", "https://a.example/2", "https://a.example/3"} <= set(await stand.urls(job))
    (told,) = await stand.events(job, "rows_skipped")
    reasons = {row["file"].rpartition("/")[2]: row["reason"] for row in told["first"]}
    assert reasons.keys() == {
        "good.xml",
        "gone.xml",
        "page.xml",
        "cut.xml",
        "torn.xml",
        "laughs.xml",
        "gzip.xml",
        "y",
        "javascript:1",
        "[",
    }
    for name, words in {"gone": "404", "page": "web page", "cut": "well-formed", "laughs": "entities"}.items():
        assert words in reasons[f"{name}.xml"]
    assert len(stand.waits) == 2

    whole = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=Shape(bad_rows="reject")))
    assert (whole.status, whole.counts.total) == (JobStatus.FAILED, 0)


@pytest.mark.parametrize(
    ("path", "words"), [("/gone.xml", "404"), ("/robots.txt", "names no sitemap"), ("/page", "web page"), ("/", "404")]
)
async def test_no_sitemap_at_all_fails_the_job(stand: Stand, site: Site, path: str, words: str) -> None:
    site.routes |= {"/robots.txt": page(b"User-agent: *\n"), "/page": page(b"<html></html>")}
    job = await read(stand, SitemapSource(url=site.url(path), shape=SKIP))
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert words in job.error.message


@pytest.mark.security
async def test_nothing_passes_the_bounds(stand: Stand, site: Site) -> None:
    async def endless(asked: Asked, writer: asyncio.StreamWriter) -> None:
        number = int(asked.path.rpartition("/")[2])
        await page(index(*(site.url(f"/more/{number * 10 + more}") for more in range(10))))(asked, writer)

    site.otherwise = endless
    source = SitemapSource(url=site.url("/more/1"), shape=SKIP)
    job = await read(stand, source, SitemapBounds(files=30, depth=9))
    assert job.status is JobStatus.FAILED
    assert len(site.asked) == 30
    site.asked.clear()
    await read(stand, source, SitemapBounds(depth=1))
    assert len(site.asked) == 11


@pytest.mark.security
async def test_large_files_and_many_addresses_are_cut_off(stand: Stand, site: Site) -> None:
    line = b"https://a.example/%d\n"
    site.routes |= {
        "/all.xml": page(index(site.url("/bomb.txt"), site.url("/long.txt"), site.url("/late.txt"))),
        "/bomb.txt": page(gzip.compress(b"https://a.example/\n" * 100_000)),
        "/long.txt": chunks(b"".join(line % number for number in range(500)), 1000),
        "/late.txt": page(b"https://b.example/\n"),
    }
    bounds = SitemapBounds(file_bytes=300_000, bytes=650_000)
    job = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=SKIP), bounds)
    (told,) = await stand.events(job, "rows_skipped")
    assert {row["file"].rpartition("/")[2] for row in told["first"]} >= {"bomb.txt", "long.txt"}
    few = await read(stand, SitemapSource(url=site.url("/long.txt"), limit=7), bounds)
    assert few.counts.total == 7
    assert (await read(stand, SitemapSource(url=site.url("/long.txt")), SitemapBounds(urls=9))).counts.total == 9


@pytest.mark.security
async def test_a_sitemap_cannot_lead_to_a_private_address(tmp_path: Path, site: Site) -> None:
    site.routes["/all.xml"] = page(index(site.url("/secret.xml", host="localhost")))
    async with a_stand(tmp_path, allow_private=False, allow_hosts=("127.0.0.2",)) as stand:
        job = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=SKIP))
    assert job.status is JobStatus.FAILED
    assert not site.asked


async def test_a_job_tells_which_parts_of_its_sitemap_it_could_not_read(stand: Stand, site: Site) -> None:
    site.routes |= {
        "/all.xml": page(index(site.url("/good.xml"), site.url("/away.xml"), site.url("/cut.xml"))),
        "/good.xml": page(urlset("https://a.example/1", "mailto:nobody")),
        "/cut.xml": page(urlset("https://a.example/2")[:-9] + b"<url><loc>https://a.exam"),
    }
    job = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=SKIP))
    assert set(await stand.urls(job)) == {"https://a.example/1", "https://a.example/2"}
    away, cut = job.gaps
    assert away.startswith(f"a part of the sitemap could not be read: {site.url('/away.xml')}: ")
    assert "404" in away
    assert f"{site.url('/cut.xml')} line" in cut
    assert [warning for warning in job.warnings if "3 rows could not be used" in warning]


@pytest.mark.parametrize(("limit", "gaps"), [(2, 1), (3, 0), (4, 0)])
async def test_a_limit_is_told_when_it_left_something_out(stand: Stand, site: Site, limit: int, gaps: int) -> None:
    site.routes |= {
        "/all.xml": page(index(site.url("/1.xml"), site.url("/2.xml"))),
        "/1.xml": page(urlset("https://a.example/1", "https://a.example/2")),
        "/2.xml": page(urlset("https://a.example/3")),
    }
    job = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=SKIP, limit=limit))
    assert len(await stand.urls(job)) == min(limit, 3)
    assert [f"the limit of {limit} pages" in gap for gap in job.gaps] == [True] * gaps


async def test_a_sitemap_may_spell_its_addresses_as_browsers_take_them(stand: Stand, site: Site) -> None:
    site.routes["/all.xml"] = page(
        urlset("https://a.example/straße", " HTTPS://a.example/2 ", "https://bücher.example/", "https://a.example/x|y")
    )
    job = await read(stand, SitemapSource(url=site.url("/all.xml"), shape=SKIP))
    assert set(await stand.urls(job)) == {
        "https://a.example/stra%C3%9Fe",
        "https://a.example/2",
        "https://xn--bcher-kva.example/",
        "https://a.example/x%7Cy",
    }
    assert (job.skipped_rows, job.warnings) == (0, ())


async def test_items_begin_before_the_sitemap_is_read_whole(stand: Stand, site: Site) -> None:
    """They are there while the second file has not come; a reader that dies then costs nothing and counts nothing
    twice."""
    gate, urls = asyncio.Event(), [f"https://a.example/{number}" for number in range(1200)]

    async def late(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        await page(urlset(*urls[1100:], "https://a.example/0"))(asked, writer)

    site.routes |= {
        "/all.xml": page(index(site.url("/a.xml"), site.url("/b.xml"))),
        "/a.xml": page(urlset(*urls[:1100])),
        "/b.xml": late,
    }
    job = await stand.create(SitemapSource(url=site.url("/all.xml"), shape=SKIP))
    killed = asyncio.create_task(stand.intake().fill(job))
    try:
        await _until_items(stand, job, 1)
        assert (await stand.job(job)).status is JobStatus.CREATING
        assert await stand.store.batches.cut(a_batch(job, 10), stand.clock()) is not None
    finally:
        killed.cancel()
        await asyncio.wait((killed,))
        gate.set()
    assert await stand.intake().fill(job)
    after = await stand.job(job)
    assert (after.status, after.counts.total, after.skipped_rows) == (JobStatus.RUNNING, 1200, 1)
    assert sorted(await stand.urls(job)) == sorted(urls)


async def test_a_list_that_may_be_refused_begins_when_it_is_read_whole(stand: Stand, site: Site) -> None:
    rows = b"".join(b"https://a.example/%d\n" % number for number in range(1500))
    site.routes["/list.txt"] = page(rows + b"not an address\n")
    refused = await stand.create(UrlSource(url=site.url("/list.txt")))
    assert await stand.intake().fill(refused)
    assert ((await stand.job(refused)).status, await stand.items(refused)) == (JobStatus.FAILED, [])
    skipped = await stand.create(UrlSource(url=site.url("/list.txt"), shape=SKIP))
    assert await stand.intake().fill(skipped)
    after = await stand.job(skipped)
    assert (after.counts.total, after.skipped_rows) == (1500, 1)


async def _until_items(stand: Stand, job: Job, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await stand.job(job)).counts.total < count:
            await asyncio.sleep(0.01)
