"""Snapshots and what changed between crawls, on every database."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import BlobsUnavailable
from scrapeyard.model import ExitReason, RunError
from scrapeyard.model.job import ExportWish, Item, ItemStatus, Job, JobPolicy, JobStatus, SnapshotPolicy
from scrapeyard.results import artifacts
from scrapeyard.results.changes import compare, miss, see
from scrapeyard.results.exports.columns import DIFF
from scrapeyard.results.exports.protocol import line_of
from scrapeyard.results.snapshots import SnapshotComparer, policy_of, scope_of
from scrapeyard.store.ports.exports import Snapshot
from scrapeyard.store.sql import SqlStore
from tests.contract.finished_jobs import NOW, Ended, bad, finished_job, good

NAMES = [column.name for column in DIFF]


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


class Crawls:
    """Crawl after crawl of one scope."""

    def __init__(self, store: SqlStore, blobs: ObjectBlobs, policy: SnapshotPolicy | None = None) -> None:
        self.store = store
        self.blobs = blobs
        self.policy = policy or SnapshotPolicy()
        self.number = 0
        self.job: Job | None = None

    async def crawl(self, *items: Ended, source: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
        """Changes by URL."""
        self.number += 1
        at = NOW + 1000 * self.number
        self.job = await finished_job(
            self.store, items, job_id=f"job_{self.number}", snapshots=self.policy, at=at, source=source
        )
        return await self.compare()

    async def compare(self) -> dict[str, dict[str, Any]]:
        assert self.job is not None
        metadata = await SnapshotComparer(self.store, self.blobs).update(self.job)
        assert metadata is not None
        rows = [dict(zip(NAMES, row, strict=True)) for row in await changes(self.blobs, self.job.id, metadata.parts)]
        assert len(rows) == metadata.rows == sum(metadata.counts.values())
        assert len({row["url"] for row in rows}) == len(rows)
        return {row["url"]: row for row in rows}


async def changes(blobs: ObjectBlobs, job_id: str, parts: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    for part in range(1, parts + 1):
        found += json.loads(await artifacts.read(blobs, keys.changes(job_id, part)))
    return found


def types(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {url.rpartition("/")[2]: row["change_type"] for url, row in found.items()}


async def test_the_four_changes(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    first = await crawls.crawl(*(good(n, {"title": "t", "price": n}) for n in range(3)))
    assert types(first) == {"0": "ADDED", "1": "ADDED", "2": "ADDED"}
    second = await crawls.crawl(
        good(0, {"title": "t", "price": 0}), good(1, {"title": "u", "price": 1.5, "new": 1}), good(3, {"title": "t"})
    )
    assert types(second) == {"0": "UNCHANGED", "1": "MODIFIED", "2": "REMOVED", "3": "ADDED"}
    row = second["http://shop.example/1"]
    assert row["fields_changed"] == "new;price;title"
    assert (row["price_prev"], row["price_curr"], row["title_prev"], row["title_curr"]) == (1, 1.5, "t", "u")
    assert row["prev_crawl_at"] < row["curr_crawl_at"]
    gone = second["http://shop.example/2"]
    assert (gone["title_prev"], gone["title_curr"], gone["price_prev"], gone["price_curr"]) == ("t", None, 2, None)
    third = await crawls.crawl(good(0, {"title": "t", "price": 0}), good(2, {"title": "t"}))
    assert types(third) == {"0": "UNCHANGED", "1": "REMOVED", "2": "ADDED", "3": "REMOVED"}


@pytest.mark.parametrize("reason", [ExitReason.FETCH_TIMEOUT, ExitReason.FETCH_BLOCKED, ExitReason.SCRIPT_ERROR])
async def test_a_failed_fetch_is_never_removed(store: SqlStore, blobs: ObjectBlobs, reason: ExitReason) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(good(0), good(1))
    for _ in range(3):
        told = await crawls.crawl(good(0), bad(1, reason, 503), bad(2, reason))
        assert types(told) == {"0": "UNCHANGED", "1": "FAILED", "2": "FAILED"}
        assert told["http://shop.example/1"]["reason"] == f"{reason}: it failed"
    assert types(await crawls.crawl(good(0), good(1))) == {"0": "UNCHANGED", "1": "UNCHANGED"}


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_what_the_site_says_is_gone(store: SqlStore, blobs: ObjectBlobs) -> None:
    answer = {"status": 410, "url": "http://shop.example/1", "final_url": "http://shop.example/1", "title": "Gone"}
    crawls = Crawls(store, blobs)
    await crawls.crawl(good(0), good(1))
    told = await crawls.crawl(
        bad(0, ExitReason.FETCH_STATUS, 404), good(1, answer), bad(2, ExitReason.FETCH_STATUS, 404)
    )
    assert types(told) == {"0": "REMOVED", "1": "REMOVED"}
    assert types(await crawls.crawl(bad(0, ExitReason.FETCH_STATUS, 404), good(1, answer))) == {}
    assert types(await crawls.crawl(good(0), good(1))) == {"0": "ADDED", "1": "ADDED"}


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_a_change_is_told_when_it_stays(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs, SnapshotPolicy(confirm=3))
    seen = [(await crawls.crawl(good(0, {"title": title})))["http://shop.example/0"] for title in "ababbbb"]
    told = [row["change_type"] for row in seen]
    assert told == ["ADDED", *["UNCHANGED"] * 4, "MODIFIED", "UNCHANGED"]
    assert (seen[5]["title_prev"], seen[5]["title_curr"]) == ("a", "b")
    missing = [types(await crawls.crawl(good(9))).get("0") for _ in range(4)]
    assert missing == [None, None, "REMOVED", None]


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_ignored_fields_are_no_news(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs, SnapshotPolicy(ignore=("seen_at", "ads.*")))
    await crawls.crawl(good(0, {"title": "t", "seen_at": 1, "ads": {"a": 1}, "adsx": 1}))
    same = await crawls.crawl(good(0, {"title": "t", "seen_at": 2, "ads": {"b": {"c": 1}}, "adsx": 1}))
    assert types(same) == {"0": "UNCHANGED"}
    other = await crawls.crawl(good(0, {"title": "t", "seen_at": 2, "adsx": 2}))
    assert other["http://shop.example/0"]["fields_changed"] == "adsx"


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_long_texts_are_compared_without_being_kept(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    await crawls.crawl(good(0, {"text": "x" * 50_000}))
    (kept,) = await store.snapshots.missing("shop/product shop.example", "none", "", 10)
    assert len(str(kept.state.fields)) < 200
    assert types(await crawls.crawl(good(0, {"text": "x" * 50_000}))) == {"0": "UNCHANGED"}
    assert types(await crawls.crawl(good(0, {"text": "x" * 50_000 + "y"}))) == {"0": "MODIFIED"}


async def test_comparing_again_gives_the_same(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs, SnapshotPolicy(confirm=2))
    await crawls.crawl(*(good(n, {"n": n}) for n in range(1200)))
    await crawls.crawl(*(good(n, {"n": n // 3}) for n in range(1100)))
    first = await crawls.crawl(*(good(n, {"n": n // 3}) for n in range(1100)))
    assert set(types(first).values()) == {"UNCHANGED", "MODIFIED", "REMOVED"}
    for _ in range(2):
        assert await crawls.compare() == first
    after = await crawls.crawl(*(good(n, {"n": n // 3}) for n in range(1100)))
    assert set(types(after).values()) == {"UNCHANGED"}


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("puts", [0, 1, 2])
async def test_a_crash_at_any_part_changes_nothing(
    store: SqlStore, blobs: ObjectBlobs, tmp_path: Path, puts: int
) -> None:
    class Failing(ObjectBlobs):
        left = puts

        async def put(self, key: str, data: bytes, content_type: str, content_encoding: str = "") -> None:
            if self.left == 0:
                raise BlobsUnavailable("away")
            self.left -= 1
            await super().put(key, data, content_type, content_encoding)

    crawls = Crawls(store, blobs)
    await crawls.crawl(*(good(n, {"n": n}) for n in range(1700)))
    job = await finished_job(
        store, [good(n, {"n": n % 7}) for n in range(1, 1500)], job_id="job_2", snapshots=crawls.policy, at=NOW + 9000
    )
    with pytest.raises(BlobsUnavailable):
        await SnapshotComparer(store, Failing.in_folder(tmp_path / "blobs")).update(job)
    crawls.job = job
    told = types(await crawls.compare())
    assert {n for n, change in told.items() if change == "REMOVED"} == {"0", *(str(n) for n in range(1500, 1700))}
    assert {n for n, change in told.items() if change == "UNCHANGED"} == {str(n) for n in range(1, 7)}
    assert len(told) == 1700


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_a_page_that_is_listed_twice_counts_once(store: SqlStore, blobs: ObjectBlobs) -> None:
    crawls = Crawls(store, blobs)
    twice = [good(0, {"a": 1}, url="http://shop.example/x"), good(1, {"a": 2}, url="http://shop.example/x")]
    for expected in ("ADDED", "UNCHANGED", "UNCHANGED"):
        assert types(await crawls.crawl(*twice)) == {"x": expected}
        assert types(await crawls.compare()) == {"x": expected}


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_scopes_do_not_meet(store: SqlStore, blobs: ObjectBlobs) -> None:
    one = Crawls(store, blobs, SnapshotPolicy(scope="one"))
    two = Crawls(store, blobs, SnapshotPolicy(scope="two"))
    await one.crawl(good(0), good(1))
    two.number = 10
    assert types(await two.crawl(good(0))) == {"0": "ADDED"}
    one.number = 20
    assert types(await one.crawl(good(0), good(1))) == {"0": "UNCHANGED", "1": "UNCHANGED"}


def test_who_is_remembered_and_where() -> None:
    def job(**given: Any) -> Job:
        return Job(id="job_1", status=JobStatus.RUNNING, scraper="a/b@^1", pinned="a/b@1.0.0", created_at=1.0, **given)

    assert policy_of(job()) is None
    assert policy_of(job(exports=(ExportWish(type="diff", format="csv"),))) == SnapshotPolicy()
    asked = SnapshotPolicy(confirm=2)
    assert policy_of(job(policy=JobPolicy(snapshots=asked))) == asked
    assert policy_of(job(exports=(ExportWish(type="diff", format="csv", against="job_0"),))) is None
    assert scope_of(job(), asked, "shop.example") == "a/b shop.example"
    assert scope_of(job(), asked, "") == "a/b"
    assert scope_of(job(name="shop"), asked, "shop.example") == "shop"
    assert scope_of(job(name="shop", schedule_id="s_1"), asked, "shop.example") == "s_1"
    assert scope_of(job(name="shop"), SnapshotPolicy(scope="x"), "shop.example") == "x"


def an_item(what: str) -> Item:
    """`a`, `b`, `c`: its content; `gone`: 404; `fail`: an error."""
    good_end = what in ("a", "b", "c")
    return Item(
        seq=0,
        key="k",
        input=Raw(b'{"url":"http://a/"}'),
        status=ItemStatus.SUCCESS if good_end else ItemStatus.ERROR,
        result=Raw(json.dumps({"title": what}).encode()) if good_end else None,
        error=None if good_end else RunError(message="no", site_status=404 if what == "gone" else None),
        finished_at=NOW,
    )


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["a", "b", "c", "gone", "fail", "absent"]), max_size=14), st.integers(1, 3))
def test_any_history_is_told_as_a_plain_reading_of_it(history: list[str], confirm: int) -> None:
    policy = SnapshotPolicy(confirm=confirm)
    known: Snapshot | None = None
    shown: str | None = None
    """What a reader who believed every row would think the page says; None: it is not there."""
    run = 0
    """Crawls in a row that say the same other thing; a failed one neither counts nor breaks it."""
    other = ""
    for number, what in enumerate(history):
        job_id = f"job_{number}"
        for _ in range(2):  # the second time stands for a crash in between
            if what == "absent":
                after, row = miss(known, job_id, NOW, policy) if known is not None else (None, None)
            else:
                after, row = compare(known, see(line_of(an_item(what)), 0, ()), job_id, policy)
            known = after if after is not None or what == "absent" else known
            if after is None:
                break
        told = None if row is None else row[NAMES.index("change_type")]
        said = "gone" if what in ("gone", "absent") else what
        if what == "fail":
            assert told == "FAILED"
            continue
        if said == (shown or "gone"):
            run, other = 0, ""
            assert told in (None, "UNCHANGED")
            assert (told == "UNCHANGED") == (shown is not None)
            continue
        run, other = (run + 1, other) if other == said else (1, said)
        if shown is None or run >= confirm:
            assert told == ("ADDED" if shown is None else "REMOVED" if said == "gone" else "MODIFIED")
            shown = None if said == "gone" else said
            run, other = 0, ""
        else:
            assert told in (None, "UNCHANGED")
