"""Exports from the store to the blob store, by the process that writes them; read back by the programs people use."""

import asyncio
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, Literal

import msgspec
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import BlobsUnavailable, Unavailable
from scrapeyard.model import ExitReason, FetchPolicy
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish, SnapshotPolicy
from scrapeyard.results import artifacts
from scrapeyard.results.exporter import LEASE_SECONDS, MOST_ATTEMPTS, Exporter
from scrapeyard.results.exports.columns import DIFF, FULL, SEO
from scrapeyard.results.finishing import Finisher, wished_id
from scrapeyard.results.masking import Masking
from scrapeyard.settings import MaskingSettings
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.contract.blobs.test_blobs import bucket_settings
from tests.contract.finished_jobs import NOW, Ended, bad, finished_job, good
from tests.leaks import PATIENCE, descendants
from tests.services.seaweed import SeaweedServer

Format = Literal["csv", "xlsx", "json", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "xlsx", "json", "jsonl", "parquet")
on_sqlite = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


def wished(type_: Any, format_: Format, number: int = 1, job_id: str = "job_1") -> Export:
    return Export(
        id=f"export_{number}", job_id=job_id, wish=ExportWish(type=type_, format=format_), created_at=NOW + number
    )


def page(number: int) -> dict[str, Any]:
    return {
        "status": 200,
        "url": f"http://shop.example/{number}",
        "final_url": f"http://shop.example/p/{number}",
        "content_type": "text/html",
        "title": f"=Thing {number}, “quoted” \n한국어",
        "text_hash": "ab" * 32,
        "product": {"price": number + 0.5, "currency": "EUR", "images": ["a", "b"], "attributes": {"k": "v"}},
    }


async def make(store: SqlStore, blobs: ObjectBlobs, clock: Clock, export: Export) -> tuple[Export, bytes]:
    assert await store.exports.add(export)
    made = await Exporter(store, blobs, clock).make(export.id)
    assert made is not None
    assert made.error == ""
    assert made.state is ExportState.DONE
    data = await blobs.get(made.key)
    assert (made.bytes, made.digest) == (len(data), hashlib.sha256(data).hexdigest())
    return made, data


def table(data: bytes, format_: Format) -> pd.DataFrame:
    if format_ == "csv":
        return pd.read_csv(io.BytesIO(data))
    if format_ == "xlsx":
        return pd.read_excel(io.BytesIO(data), engine="openpyxl")
    if format_ == "parquet":
        return pq.read_table(io.BytesIO(data)).to_pandas()
    return pd.DataFrame([json.loads(line) for line in data.splitlines()] if format_ == "jsonl" else json.loads(data))


async def test_every_item_has_one_row(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    items = [bad(n) if n % 10 == 9 else good(n, page(n)) for n in range(1234)]
    await finished_job(store, items)
    for number, format_ in enumerate(FORMATS):
        made, data = await make(store, blobs, clock, wished("full", format_, number))
        found = table(data, format_)
        assert made.rows == len(found) == 1234
        assert list(found.columns) == [column.name for column in FULL]
        assert list(found["url"]) == [f"http://shop.example/{n}" for n in range(1234)]
        assert found["price"][7] == 7.5
        assert pd.isna(found["price"][9])
        mark = "'" if format_ == "csv" else ""
        assert found["title"][7] == f"{mark}=Thing 7, “quoted” \n한국어"
        assert found["images"][7] == "a|b"
        assert made.key == f"job_1/exports/export_{number}/full.{format_}"


@on_sqlite
async def test_exports_alone_are_masked_and_the_counts_are_told(
    store: SqlStore, blobs: ObjectBlobs, clock: Clock
) -> None:
    told = {"name": "Ann", "contact": "ann@shop.example or +34 600 100 200", "card": 4111111111111111}
    job = await finished_job(store, [good(0, told), good(1, {"name": "Bob"})])
    masks = FetchPolicy(mask="email,card", mask_in="exports")
    await store.jobs.set_policy(job.id, replace(job.policy, fetching=masks))
    assert await store.exports.add(wished("records", "jsonl"))
    made = await Exporter(store, blobs, clock, Masking(MaskingSettings())).make("export_1")
    assert made is not None
    assert made.notes[-1] == "masked: card 1, email 1"
    lines = [json.loads(line) for line in (await blobs.get(made.key)).splitlines()]
    assert (lines[0]["contact"], lines[0]["card"]) == ("[email] or +34 600 100 200", "[card]")
    items = (await store.items.page(job.id, ItemFilter(), None, 10)).items
    assert json.loads(bytes(items[0].result or b"")) == told


@on_sqlite
@pytest.mark.parametrize("format_", FORMATS)
async def test_records_have_columns_of_their_own(
    store: SqlStore, blobs: ObjectBlobs, clock: Clock, format_: Format
) -> None:
    items = [
        good(0, {"name": "a", "size": {"w": 1, "h": 2}}),
        good(1, [{"name": "b", "tags": ["x", "y"]}, {"name": "c", "late": True}]),
        bad(2),
        good(3, "bare"),
    ]
    await finished_job(store, items)
    made, data = await make(store, blobs, clock, wished("records", format_))
    found = table(data, format_)
    assert made.rows == len(found) == 4
    assert list(found["_item"]) == ["item-0", "item-1", "item-1", "item-3"]
    assert list(found["name"].dropna()) == ["a", "b", "c"]
    if format_ in ("json", "jsonl"):
        assert found["size"][0] == {"w": 1, "h": 2}
        assert found["tags"][1] == ["x", "y"]
    else:
        assert list(found.columns) == ["_item", "name", "size.w", "size.h", "tags", "late", "value"]
        assert (found["size.w"][0], found["size.h"][0], found["tags"][1]) == (1, 2, "x|y")
    assert found["value"][3] == "bare"


@on_sqlite
async def test_seo_has_its_columns(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    data = page(1) | {
        "description": "d",
        "h1": "h",
        "opengraph": {"title": "og", "image": "i.png"},
        "twitter": {"title": "tw"},
        "canonical": "http://c/",
        "robots": {"meta": "noindex", "header": None, "index": False, "follow": True},
        "hreflang": [{"language": "en", "url": "http://c/en"}, {"language": "ko", "url": "http://c/ko"}],
        "images": [{"url": "u", "alt": "one"}, {"url": "v", "alt": None}, {"url": "w", "alt": "three"}],
    }
    await finished_job(store, [good(1, data)])
    _, written = await make(store, blobs, clock, wished("seo", "json"))
    (row,) = json.loads(written)
    assert list(row) == [column.name for column in SEO]
    assert (row["meta_description"], row["og_title"], row["twitter_title"]) == ("d", "og", "tw")
    assert (row["robots"], row["hreflang"]) == ("noindex", "en=http://c/en|ko=http://c/ko")
    assert row["images_alt_joined"] == "one|three"
    assert row["fetched_at"].startswith("2023-11-14T22:13:22")


@on_sqlite
async def test_results_that_are_objects_are_read(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    ends = []
    for number in range(40):
        raw = msgspec.json.encode({"title": f"large {number}", "text": "x" * 3000})
        kept = await artifacts.keep(blobs, "job_1", f"item-{number}", keys.DATA, raw, "application/json")
        ends.append(Ended(key=f"item-{number}", url="http://a/", result_key=kept.key, result_bytes=kept.size))
    await finished_job(store, ends)
    _, data = await make(store, blobs, clock, wished("full", "jsonl"))
    assert [json.loads(line)["title"] for line in data.splitlines()] == [f"large {n}" for n in range(40)]
    await blobs.delete([ends[7].result_key])
    await store.exports.add(wished("full", "csv", 2))
    failed = await Exporter(store, blobs, clock).make("export_2")
    assert failed is not None
    assert failed.state is ExportState.FAILED
    assert "item-7" in failed.error


@on_sqlite
async def test_a_job_without_items_gives_an_empty_table(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [bad(1)])
    for number, format_ in enumerate(FORMATS):
        made, data = await make(store, blobs, clock, wished("records", format_, number))
        assert made.rows == len(table(data, format_)) == 0


@on_sqlite
async def test_the_same_rows_give_the_same_bytes(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(n, page(n)) for n in range(300)])
    for number, format_ in enumerate(FORMATS):
        first, _ = await make(store, blobs, clock, wished("full", format_, number))
        clock.now += 1000
        again, _ = await make(store, blobs, clock, wished("full", format_, number))
        assert again.digest == first.digest
        assert again.finished_at != first.finished_at


@on_sqlite
async def test_without_a_mark_if_wished(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(1)])
    with_mark = wished("full", "csv", 1)
    plain = replace(wished("full", "csv", 2), wish=ExportWish(type="full", format="csv", bom=False))
    assert (await make(store, blobs, clock, with_mark))[1].startswith(b"\xef\xbb\xbfurl,")
    assert (await make(store, blobs, clock, plain))[1].startswith(b"url,final_url,http_status,")


async def test_the_duty_makes_what_waits(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(1)])
    exporter = Exporter(store, blobs, clock)
    await exporter.run_once()
    for number in (1, 2):
        await store.exports.add(wished("full", "csv", number))
    await exporter.run_once()
    await exporter.idle()
    await exporter.run_once()
    await exporter.idle()
    assert [export.state for export in await store.exports.of_job("job_1")] == [ExportState.DONE, ExportState.DONE]
    told = [
        json.loads(bytes(event.data)) for event in await store.events.after("job_1", 0, 100) if event.kind == "export"
    ]
    assert [event["state"] for event in told] == ["done", "done"]


@on_sqlite
async def test_one_that_was_lost_is_made_by_another(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(1)])
    await store.exports.add(wished("full", "csv"))
    assert await store.exports.claim(None, "killed", clock(), clock() + LEASE_SECONDS) is not None
    exporter = Exporter(store, blobs, clock)
    await exporter.run_once()
    await exporter.idle()
    clock.now += LEASE_SECONDS
    await exporter.run_once()
    await exporter.idle()
    made = await store.exports.get("export_1")
    assert made is not None
    assert (made.state, made.attempt) == (ExportState.DONE, 2)


@on_sqlite
async def test_one_that_never_ends_is_given_up(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(1)])
    await store.exports.add(wished("full", "csv"))
    for _ in range(MOST_ATTEMPTS):
        assert await store.exports.claim(None, "killed", clock(), clock() + LEASE_SECONDS) is not None
        clock.now += LEASE_SECONDS
    failed = await Exporter(store, blobs, clock).make("export_1")
    assert failed is not None
    assert failed.state is ExportState.FAILED
    assert "never ended" in failed.error


class Broken(ObjectBlobs):
    """A blob store that takes a few pieces and is then away."""

    async def put_stream(self, key: str, pieces: Any, content_type: str, content_encoding: str = "") -> int:
        await anext(pieces)
        raise BlobsUnavailable("it is away")


class Stuck(ObjectBlobs):
    """A blob store that takes a piece and then waits for ever."""

    taken: asyncio.Event

    async def put_stream(self, key: str, pieces: Any, content_type: str, content_encoding: str = "") -> int:
        await anext(pieces)
        self.taken.set()
        await asyncio.Event().wait()
        return 0


@on_sqlite
async def test_an_outage_is_no_attempt_and_leaves_no_process(store: SqlStore, tmp_path: Path, clock: Clock) -> None:
    await finished_job(store, [good(n, page(n) | {"title": "x" * 20_000}) for n in range(300)])
    await store.exports.add(wished("full", "csv"))
    broken = Broken.in_folder(tmp_path / "broken")
    for _ in range(MOST_ATTEMPTS + 1):
        with pytest.raises(Unavailable):
            await Exporter(store, broken, clock).make("export_1")
    waiting = await store.exports.get("export_1")
    assert waiting is not None
    assert (waiting.state, waiting.attempt) == (ExportState.QUEUED, 0)
    assert not [one for one in descendants(os.getpid()) if "results.exports.child" in one.words]


@on_sqlite
async def test_stopping_gives_back_and_ends_the_process(store: SqlStore, tmp_path: Path, clock: Clock) -> None:
    # More than the pipe holds: a process that has written everything would have ended by itself.
    await finished_job(store, [good(n, page(n) | {"title": "x" * 20_000}) for n in range(300)])
    await store.exports.add(wished("full", "csv"))
    stuck = Stuck.in_folder(tmp_path / "stuck")
    stuck.taken = asyncio.Event()
    exporter = Exporter(store, stuck, clock)
    await exporter.run_once()
    try:
        await asyncio.wait_for(stuck.taken.wait(), PATIENCE)
        assert [one for one in descendants(os.getpid()) if "results.exports.child" in one.words]
    finally:
        await exporter.stop()
        await exporter.stop()
    assert not [one for one in descendants(os.getpid()) if "results.exports.child" in one.words]
    given_back = await store.exports.get("export_1")
    assert given_back is not None
    assert given_back.state is ExportState.QUEUED


@on_sqlite
async def test_a_killed_process_is_told(store: SqlStore, tmp_path: Path, clock: Clock) -> None:
    class Killer(ObjectBlobs):
        async def put_stream(self, key: str, pieces: Any, content_type: str, content_encoding: str = "") -> int:
            for one in descendants(os.getpid()):
                if "results.exports.child" in one.words:
                    os.kill(one.pid, 9)
            return sum([len(piece) async for piece in pieces])

    await finished_job(store, [good(n, page(n)) for n in range(30)])
    await store.exports.add(wished("full", "csv"))
    failed = await Exporter(store, Killer.in_folder(tmp_path / "x"), clock).make("export_1")
    assert failed is not None
    assert failed.state is ExportState.FAILED
    assert "ended early" in failed.error


@on_sqlite
async def test_a_diff_of_a_job_that_was_not_compared(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(1)])
    await store.exports.add(wished("diff", "csv"))
    failed = await Exporter(store, blobs, clock).make("export_1")
    assert failed is not None
    assert failed.state is ExportState.FAILED
    assert "policy.snapshots" in failed.error
    assert await Exporter(store, blobs, clock).make("export_9") is None


async def test_finishing_writes_all_that_was_wished(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    wishes = [ExportWish(type="full", format="csv"), ExportWish(type="diff", format="csv")]
    items = [good(n, page(n)) for n in range(20)]
    first = await finished_job(store, items, exports=wishes)
    exporter = Exporter(store, blobs, clock)
    finisher = Finisher(store, blobs, exporter, clock)
    await finisher.finish(first)
    changed = [good(n, page(n) | ({"title": "new"} if n == 3 else {})) for n in range(19)]
    second = await finished_job(store, changed, job_id="job_2", exports=wishes, at=NOW + 5000)
    for _ in range(2):
        await finisher.finish(second)
        made = {export.wish.type: export for export in await store.exports.of_job("job_2")}
        assert {export.state for export in made.values()} == {ExportState.DONE}
        assert made["full"].id == wished_id("job_2", wishes[0])
        found = pd.read_csv(io.BytesIO(await blobs.get(made["diff"].key)))
        assert list(found.columns) == [column.name for column in DIFF]
        assert dict(found["change_type"].value_counts()) == {"UNCHANGED": 18, "MODIFIED": 1, "REMOVED": 1}
        (modified,) = found[found["change_type"] == "MODIFIED"].to_dict("records")
        assert (modified["fields_changed"], modified["title_curr"]) == ("title", "new")
        assert modified["price_prev"] == modified["price_curr"] == 3.5
    assert await blobs.size(keys.job_metadata("job_2")) is not None


@on_sqlite
async def test_exports_in_a_bucket(store: SqlStore, seaweed_server: SeaweedServer, clock: Clock) -> None:
    blobs = ObjectBlobs.in_bucket(bucket_settings(seaweed_server, seaweed_server.make_bucket()))
    await finished_job(store, [good(n, page(n)) for n in range(2000)], snapshots=SnapshotPolicy())
    for number, format_ in enumerate(FORMATS):
        made, data = await make(store, blobs, clock, wished("full", format_, number))
        assert made.rows == len(table(data, format_)) == 2000


@on_sqlite
async def test_a_workbook_notes_which_statuses_its_pages_answered_with(
    store: SqlStore, blobs: ObjectBlobs, clock: Clock
) -> None:
    refused = [bad(n, ExitReason.FETCH_STATUS, status) for n, status in enumerate((500, 501, 500))]
    await finished_job(store, [*refused, good(3, page(3))])
    made, data = await make(store, blobs, clock, wished("full", "xlsx"))
    told = "HTTP statuses of the pages: 500: 2, 501: 1"
    assert told in made.notes
    notes = openpyxl.load_workbook(io.BytesIO(data))["Notes"]
    assert told in [row[0].value for row in notes.iter_rows()]


@on_sqlite
async def test_excel_reads_the_workbook(store: SqlStore, blobs: ObjectBlobs, clock: Clock) -> None:
    await finished_job(store, [good(n, page(n)) for n in range(5)])
    _, data = await make(store, blobs, clock, wished("full", "xlsx"))
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    cell = sheet.cell(2, 5)
    assert (cell.value, cell.data_type) == ("=Thing 0, “quoted” \n한국어", "s")
    assert sheet.cell(2, 7).value == 0.5
