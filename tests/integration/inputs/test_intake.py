"""From a list to a job's items, on real backends: what is read, what is refused, and what a crash leaves."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from copy import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from scrapeyard.blobs import keys
from scrapeyard.errors import StoreUnavailable
from scrapeyard.inputs.formats.rows import ListRefused, ListUnreadable
from scrapeyard.inputs.importer import LIST_SECONDS
from scrapeyard.inputs.leases import LEASE_SECONDS
from scrapeyard.inputs.source import ListSource, Shape, UrlSource
from scrapeyard.model import new_id
from scrapeyard.model.job import JobStatus
from scrapeyard.store.sql import SqlStore
from tests.integration.intake_stand import SCRAPER, Stand, a_stand
from tests.sites.site import Site, chunks, page, reset, stalled

SKIP = Shape(bad_rows="skip")


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with a_stand(tmp_path) as stand:
        yield stand


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


async def given(text: str | bytes, size: int = 1000) -> AsyncIterator[bytes]:
    data = text.encode() if isinstance(text, str) else text
    for at in range(0, len(data), size):
        yield data[at : at + size]


def csv_of(count: int) -> str:
    return "url\n" + "".join(f"https://shop.example/{number}\n" for number in range(count))


def breaking(store: SqlStore, blocks: int, *, after: bool) -> SqlStore:
    """A store that is away once so many blocks were added; everything else is the real one's."""
    left = blocks

    async def add(*args: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0 and not after:
            raise StoreUnavailable("away")
        added = await store.items.add(*args, **more)
        if left < 0:
            raise StoreUnavailable("the answer was lost")
        return added

    broken, items = copy(store), copy(store.items)
    items.add = add  # type: ignore[method-assign]
    broken.items = items
    return broken


async def test_an_upload_becomes_items_in_its_order(stand: Stand) -> None:
    intake, job_id = stand.intake(), new_id("job")
    summary = await intake.keep_list(job_id, SCRAPER, given(csv_of(2500)), Shape())
    assert (summary.rows, summary.bad) == (2500, 0)
    job = await stand.create(ListSource(name="shops.csv"), id=job_id)
    assert await intake.fill(job)
    assert await stand.urls(job) == [f"https://shop.example/{number}" for number in range(2500)]
    now = await stand.job(job)
    assert (now.status, now.reading, now.counts.total, now.skipped_rows) == (JobStatus.RUNNING, False, 2500, 0)
    assert await stand.blobs.size(keys.job_list(job_id)) is None


async def test_rows_that_are_bad_or_there_twice_are_counted_and_told(stand: Stand) -> None:
    text = "url\nhttps://a.example/\nnot a url\nhttps://b.example/\nhttps://a.example/\nhttps://c.example/,1\n"
    intake, job_id = stand.intake(), new_id("job")
    await intake.keep_list(job_id, SCRAPER, given(text), SKIP)
    job = await stand.create(ListSource(shape=SKIP), id=job_id)
    await intake.fill(job)
    assert await stand.urls(job) == ["https://a.example/", "https://b.example/"]
    assert (await stand.job(job)).skipped_rows == 3
    (told,) = await stand.events(job, "rows_skipped")
    assert (told["count"], [row["line"] for row in told["first"]]) == (2, [6, 3])


async def test_a_list_that_is_wanted_whole_leaves_nothing_when_a_row_is_bad(stand: Stand) -> None:
    with pytest.raises(ListRefused, match="line 3") as refused:
        await stand.intake().keep_list("job_x", SCRAPER, given("url\nhttps://a.example/\nno\n" + csv_of(9)), Shape())
    assert refused.value.details["count"] == 2
    assert await stand.blobs.size(keys.job_list("job_x")) is None
    with pytest.raises(ListUnreadable, match="no rows"):
        await stand.intake().keep_list("job_x", SCRAPER, given("url\n"), Shape())


async def test_values_of_a_call_are_items_too(stand: Stand) -> None:
    intake, job_id = stand.intake(), new_id("job")
    values = ["https://a.example/", {"item_id": "b", "input": {"url": "https://b.example/"}}]
    assert (await intake.keep_values(job_id, SCRAPER, values, Shape())).rows == 2
    job = await stand.create(ListSource(), id=job_id)
    await intake.fill(job)
    assert [item.key for item in await stand.items(job)][1] == "b"
    with pytest.raises(ListRefused, match="line 2"):
        await intake.keep_values("job_y", SCRAPER, ["https://a.example/", 7], Shape())
    with pytest.raises(ListRefused, match="line 2"):
        await intake.check_values(SCRAPER, ["https://a.example/", 7], Shape())


@pytest.mark.parametrize("after", [False, True])
async def test_whoever_goes_on_after_a_crash_adds_each_item_once(stand: Stand, after: bool) -> None:
    first, job_id = stand.intake(breaking(stand.store, 2, after=after)), new_id("job")
    await first.keep_list(job_id, SCRAPER, given(csv_of(4200) + "https://shop.example/7\n"), Shape())
    job = await stand.create(ListSource(), id=job_id)
    with pytest.raises(StoreUnavailable):
        await first.fill(job)
    assert (await stand.job(job)).counts.total in (2000, 3000)
    assert await stand.intake().fill(job)
    assert await stand.urls(job) == [f"https://shop.example/{number}" for number in range(4200)]
    now = await stand.job(job)
    assert (now.status, now.skipped_rows) == (JobStatus.RUNNING, 1)


async def test_one_reads_at_a_time_and_another_when_the_first_is_gone(stand: Stand) -> None:
    intake, job_id = stand.intake(), new_id("job")
    await intake.keep_list(job_id, SCRAPER, given(csv_of(3)), Shape())
    job = await stand.create(ListSource(), id=job_id)
    role, now = f"reading {job_id}", stand.clock()
    assert await stand.store.leaders.claim(role, "one that was killed", now, now + LEASE_SECONDS)
    assert not await intake.fill(job)
    stand.clock.now += LEASE_SECONDS
    assert await intake.fill(job)
    assert (await stand.job(job)).counts.total == 3


async def test_one_reads_at_a_time_within_a_process_too(stand: Stand) -> None:
    intake, job_id = stand.intake(), new_id("job")
    await intake.keep_list(job_id, SCRAPER, given(csv_of(1500)), Shape())
    job = await stand.create(ListSource(), id=job_id)
    assert sorted(await asyncio.gather(*(intake.fill(job) for _ in range(5)))) == [False] * 4 + [True]
    assert (await stand.job(job)).counts.total == 1500


async def test_a_job_that_was_read_meanwhile_is_not_read_again(stand: Stand, site: Site) -> None:
    site.routes["/list"] = page(b"https://a.example/\n")
    job = await stand.create(UrlSource(url=site.url("/list")))
    assert await stand.intake().fill(job)
    assert not await stand.intake().fill(job)
    assert len(site.asked) == 1


async def test_a_list_that_never_came_fails_its_job_in_the_end(stand: Stand) -> None:
    job, reading = await stand.create(ListSource()), stand.reading()
    await reading.run_once()
    await reading.idle()
    assert (await stand.job(job)).status is JobStatus.CREATING
    stand.clock.now += LIST_SECONDS
    await reading.run_once()
    await reading.idle()
    now = await stand.job(job)
    assert now.status is JobStatus.FAILED
    assert now.error is not None
    assert "make the job again" in now.error.message


async def test_a_cancelled_job_takes_no_more(stand: Stand) -> None:
    intake, job_id = stand.intake(), new_id("job")
    await intake.keep_list(job_id, SCRAPER, given(csv_of(3)), Shape())
    job = await stand.create(ListSource(), id=job_id)
    await stand.store.jobs.cancel(job_id, False, stand.clock())
    await intake.fill(job)
    now = await stand.job(job)
    assert (now.status, now.counts.total) == (JobStatus.CANCELLED, 0)


@pytest.mark.parametrize("packed", [False, True])
async def test_a_list_at_an_address_is_read_as_it_comes(stand: Stand, site: Site, packed: bool) -> None:
    data = csv_of(5000).encode()
    site.routes["/list.csv"] = page(gzip.compress(data) if packed else data)
    job, reading = await stand.create(UrlSource(url=site.url("/list.csv"))), stand.reading()
    await reading.run_once()
    await reading.idle()
    now = await stand.job(job)
    assert (now.status, now.counts.total) == (JobStatus.RUNNING, 5000)
    assert len(site.asked) == 1


async def test_a_list_that_breaks_off_is_fetched_again_from_its_start(stand: Stand, site: Site) -> None:
    good, answers = page(b"url\nhttps://a.example/\n"), [reset, page(b"busy", status=503)]

    async def answer(asked: Any, writer: Any) -> None:
        await (answers.pop(0) if answers else good)(asked, writer)

    site.routes["/list.csv"] = answer
    job = await stand.create(UrlSource(url=site.url("/list.csv")))
    await stand.intake().fill(job)
    assert await stand.urls(job) == ["https://a.example/"]
    assert len(stand.waits) == 2


@pytest.mark.parametrize(
    ("path", "words"),
    [("/nowhere", "answers 404"), ("/page", "HTML"), ("/bad", "line 3"), ("/cut", "gzip"), ("/empty", "empty")],
)
async def test_a_list_that_cannot_be_read_fails_its_job_with_the_reason(
    stand: Stand, site: Site, path: str, words: str
) -> None:
    site.routes |= {
        "/page": page(b"<html>"),
        "/bad": page(b"url\nhttps://a.example/\n:\n"),
        "/cut": page(gzip.compress(b"url\nhttps://a.example/\n")[:-4]),
        "/empty": page(b""),
    }
    job = await stand.create(UrlSource(url=site.url(path)))
    await stand.intake().fill(job)
    now = await stand.job(job)
    assert (now.status, now.counts.total, now.reading) == (JobStatus.FAILED, 0, False)
    assert now.error is not None
    assert words in now.error.message


async def test_a_job_that_begins_paused_is_read_and_stays_paused(stand: Stand, site: Site) -> None:
    site.routes["/list"] = page(b"https://a.example/\n")
    job = await stand.create(UrlSource(url=site.url("/list")), status=JobStatus.PAUSED)
    lost = await stand.create(UrlSource(url=site.url("/gone")), status=JobStatus.PAUSED)
    reading = stand.reading()
    await reading.run_once()
    await reading.idle()
    now = await stand.job(job)
    assert (now.status, now.reading, now.counts.pending) == (JobStatus.PAUSED, False, 1)
    now = await stand.job(lost)
    assert (now.status, now.reading) == (JobStatus.CANCELLED, False)
    assert "answers 404" in now.source["problem"]


async def test_a_job_with_a_source_nobody_knows_fails(stand: Stand) -> None:
    job = await stand.create(ListSource(), source={"kind": "telepathy"})
    await stand.intake().fill(job)
    assert (await stand.job(job)).status is JobStatus.FAILED


@pytest.mark.security
async def test_a_private_address_is_refused_as_for_any_fetch(tmp_path: Path, site: Site) -> None:
    site.routes["/list.csv"] = page(b"url\nhttps://a.example/\n")
    async with a_stand(tmp_path, allow_private=False) as stand:
        job = await stand.create(UrlSource(url=site.url("/list.csv")))
        await stand.intake().fill(job)
        now = await stand.job(job)
    assert now.status is JobStatus.FAILED
    assert not site.asked


@pytest.mark.security
async def test_a_bomb_at_an_address_is_cut_off(stand: Stand, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.inputs.importer.MAX_LIST", 1_000_000)
    site.routes["/bomb"] = page(gzip.compress(b"x" * 50_000_000))
    site.routes["/endless"] = chunks(b"https://a.example/\n" * 500, 1000)
    for path, words in (("/bomb", "larger than"), ("/endless", "more than")):
        job = await stand.create(UrlSource(url=site.url(path), shape=SKIP))
        await stand.intake().fill(job)
        now = await stand.job(job)
        assert now.error is not None
        assert words in now.error.message


async def test_the_oldest_sources_are_read_first_and_a_few_at_once(stand: Stand, site: Site) -> None:
    site.routes["/list"] = page(b"https://a.example/\n")
    jobs = [await stand.create(UrlSource(url=site.url("/list"))) for _ in range(9)]
    reading = stand.reading()
    for _ in range(3):
        await reading.run_once()
        await reading.idle()
    statuses = [(await stand.job(job)).status for job in jobs]
    assert statuses == [JobStatus.RUNNING] * 9
    await reading.stop()
    await reading.stop()


async def test_a_source_that_is_being_read_is_let_go_on_stop_and_read_by_another(stand: Stand, site: Site) -> None:
    site.routes["/list"] = stalled
    job, reading = await stand.create(UrlSource(url=site.url("/list"))), stand.reading()
    await reading.run_once()
    await site.until(lambda: len(site.asked) == 1)
    await reading.stop()
    site.routes["/list"] = page(b"https://a.example/\n")
    assert await stand.intake().fill(job)
    assert (await stand.job(job)).counts.total == 1


async def test_bad_rows_of_a_refused_list_are_told_as_an_event(stand: Stand, site: Site) -> None:
    site.routes["/list"] = page(b"url\n" + b"x\n" * 250)
    job = await stand.create(UrlSource(url=site.url("/list")))
    await stand.intake().fill(job)
    (told,) = await stand.events(job, "rows_refused")
    assert len(told["first"]) == 100
    assert msgspec.json.encode(told)
