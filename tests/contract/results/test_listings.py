"""REMOVED is said only of pages that somebody looked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish, SnapshotPolicy
from scrapeyard.results.exporter import Exporter
from scrapeyard.store.sql import SqlStore
from tests.contract.finished_jobs import NOW, Ended, bad, finished_job, good
from tests.contract.results.test_snapshots import Crawls, types

pytestmark = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
SITEMAP = {"kind": "sitemap", "url": "http://shop.example/sitemap.xml"}
FOLLOW = {"kind": "follow", "start": ["http://shop.example/0"], "depth": 2}


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


def answered(number: int, status: int, **fields: Any) -> Ended:
    url = f"http://shop.example/{number}"
    return good(number, {"status": status, "url": url, "final_url": url, **fields})


async def test_a_page_that_a_whole_listing_no_longer_has_is_removed(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(good(0), good(1), source=SITEMAP)
    told = await crawls.crawl(good(0), source=SITEMAP)
    assert types(told) == {"0": "UNCHANGED", "1": "REMOVED"}
    assert told["http://shop.example/1"]["reason"] == "no longer listed"


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (SITEMAP, SITEMAP | {"gaps": ["a part of the sitemap could not be read: x"]}, "a part of the sitemap"),
        (SITEMAP, SITEMAP | {"gaps": ["the limit of 1 pages was reached"]}, "the limit"),
        (SITEMAP, SITEMAP | {"modified_since": 5.0}, "modified lately"),
        (SITEMAP, SITEMAP | {"choice": {"include": ["/0"]}}, "another source"),
        (SITEMAP, FOLLOW, "another source"),
        (FOLLOW, FOLLOW | {"gaps": ["1 page failed, and the links there could not be followed"]}, "1 page failed"),
        (FOLLOW, FOLLOW | {"start": ["http://shop.example/elsewhere"]}, "another source"),
    ],
)
async def test_a_page_that_nobody_looked_for_is_unknown(
    store: SqlStore, blobs: ObjectBlobs, first: dict[str, Any], second: dict[str, Any], why: str
) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(good(0), good(1), source=first)
    for _ in range(2):
        told = await crawls.crawl(good(0), source=second)
        assert types(told) == {"0": "UNCHANGED", "1": "UNKNOWN"}
        assert why in told["http://shop.example/1"]["reason"]
        assert await crawls.compare() == told
    again = await crawls.crawl(good(0), good(1), source=first)
    assert types(again) == {"0": "UNCHANGED", "1": "UNCHANGED"}


async def test_a_smaller_depth_removes_nothing(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    deep = Ended(key="deep", url="http://shop.example/9", data={"title": "t"}, depth=2)
    await crawls.crawl(good(0), deep, source=FOLLOW)
    told = await crawls.crawl(good(0), source=FOLLOW | {"depth": 1})
    assert types(told) == {"0": "UNCHANGED", "9": "UNKNOWN"}
    assert types(await crawls.crawl(good(0), source=FOLLOW)) == {"0": "UNCHANGED", "9": "REMOVED"}


@pytest.mark.parametrize("status", [403, 429, 500, 503])
async def test_an_error_page_is_not_the_page(store: SqlStore, blobs: ObjectBlobs, status: int) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(answered(0, 200, title="t"))
    told = await crawls.crawl(answered(0, status, title="broken"), answered(1, status))
    assert types(told) == {"0": "FAILED", "1": "FAILED"}
    assert told["http://shop.example/0"]["reason"] == f"status {status}"
    assert (told["http://shop.example/0"]["title_prev"], told["http://shop.example/0"]["title_curr"]) == ("t", None)
    assert types(await crawls.crawl(answered(0, 200, title="t"))) == {"0": "UNCHANGED"}


async def test_two_sites_do_not_meet_without_a_name(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    here, there = {"kind": "sitemap", "url": "http://a.example/"}, {"kind": "sitemap", "url": "http://b.example/"}
    for expected in ("ADDED", "UNCHANGED"):
        assert types(await crawls.crawl(good(0, url="http://a.example/1"), source=here)) == {"1": expected}
        assert types(await crawls.crawl(good(0, url="http://b.example/2"), source=there)) == {"2": expected}


async def test_two_ports_are_two_sites(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    for port in (8001, 8002):
        source = {"kind": "sitemap", "url": f"http://127.0.0.1:{port}/sitemap.xml"}
        told = await crawls.crawl(good(0, url=f"http://127.0.0.1:{port}/1"), source=source)
        assert types(told) == {"1": "ADDED"}


async def test_a_list_without_a_name_speaks_of_its_own_pages(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(good(0), good(1), source={"kind": "list"})
    assert types(await crawls.crawl(good(0), source={"kind": "list"})) == {"0": "UNCHANGED"}


async def test_a_list_with_a_scope_is_whole(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs, SnapshotPolicy(scope="mine"))
    await crawls.crawl(good(0), good(1), source={"kind": "list"})
    assert types(await crawls.crawl(good(0), source={"kind": "list"})) == {"0": "UNCHANGED", "1": "REMOVED"}


async def test_parts_that_one_crawl_did_not_extract_are_not_compared(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(answered(0, 200, title="t", product=None, images=None))
    told = await crawls.crawl(answered(0, 200, title="t", product={"price": 5}, images=[]))
    assert types(told) == {"0": "UNCHANGED"}
    told = await crawls.crawl(answered(0, 200, title="t", product={"price": 6}, images=[]))
    assert told["http://shop.example/0"]["fields_changed"] == "price"


async def test_two_chosen_jobs_are_compared(store: SqlStore, blobs: ObjectBlobs) -> None:
    listed = [good(n, {"title": f"t{n}"}) for n in range(700)]
    await finished_job(store, [*listed, bad(800)], job_id="job_1", source=SITEMAP)
    later = [good(n, {"title": f"t{n}" if n != 5 else "new"}) for n in range(1, 700)]
    await finished_job(store, [*later, good(800), good(900)], job_id="job_2", source=SITEMAP, at=NOW + 1000)
    wish = ExportWish(type="diff", format="jsonl", against="job_1")
    await store.exports.add(Export(id="export_1", job_id="job_2", wish=wish, created_at=NOW))
    made = await Exporter(store, blobs, lambda: NOW).make("export_1")
    assert made is not None
    assert (made.state, made.rows) == (ExportState.DONE, 702)
    rows = {row["url"].rpartition("/")[2]: row for row in map(json.loads, (await blobs.get(made.key)).splitlines())}
    told = {name: row["change_type"] for name, row in rows.items() if row["change_type"] != "UNCHANGED"}
    assert told == {"0": "REMOVED", "5": "MODIFIED", "800": "UNKNOWN", "900": "ADDED"}
    assert (rows["5"]["title_prev"], rows["5"]["title_curr"]) == ("t5", "new")
    assert "failed to read it" in rows["800"]["reason"]


async def test_a_comparison_with_a_job_that_is_gone_fails(store: SqlStore, blobs: ObjectBlobs) -> None:
    await finished_job(store, [good(0)], job_id="job_2")
    wish = ExportWish(type="diff", format="csv", against="job_1")
    await store.exports.add(Export(id="export_1", job_id="job_2", wish=wish, created_at=NOW))
    made = await Exporter(store, blobs, lambda: NOW).make("export_1")
    assert made is not None
    assert (made.state, "job_1" in made.error) == (ExportState.FAILED, True)
