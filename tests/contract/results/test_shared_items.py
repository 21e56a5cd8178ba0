"""Several files from one reading of a job's items."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import BlobsUnavailable, NotFound, Unavailable
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.feeding import Counted, ItemReader, shared
from scrapeyard.results.finishing import Finisher, wished_id
from scrapeyard.results.manifests import read_metadata
from scrapeyard.store.sql import SqlStore
from tests.contract.finished_jobs import NOW, finished_job, good
from tests.leaks import PATIENCE

WISHES = tuple(ExportWish(type="records", format=format_) for format_ in ("csv", "jsonl", "xlsx", "json"))
on_sqlite = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)


class Halting(ObjectBlobs):
    """A blob store that takes no CSV."""

    async def put_stream(self, key: str, pieces: Any, content_type: str, content_encoding: str = "") -> int:
        if key.endswith(".csv"):
            raise BlobsUnavailable("it is away")
        return await super().put_stream(key, pieces, content_type, content_encoding)


class WithoutManifests(ObjectBlobs):
    """A blob store that takes no manifest."""

    async def put(self, key: str, data: bytes, content_type: str, content_encoding: str = "") -> None:
        if "manifest" in key:
            raise BlobsUnavailable("it is away")
        await super().put(key, data, content_type, content_encoding)


def clock() -> float:
    return NOW


async def test_files_made_together_are_those_made_alone(store: SqlStore, tmp_path: Path) -> None:
    job = await finished_job(store, [good(n, {"n": n}) for n in range(1500)], exports=WISHES)
    together = ObjectBlobs.in_folder(tmp_path / "together")
    await Finisher(store, together, Exporter(store, together, clock), clock).finish(job)
    alone = ObjectBlobs.in_folder(tmp_path / "alone")
    for export in await store.exports.of_job(job.id):
        assert (export.state, export.rows, export.progress) == (ExportState.DONE, 1500, 1.0)
        again = f"{export.id}x"
        await store.exports.add(Export(id=again, job_id=job.id, wish=export.wish, created_at=NOW))
        made = await Exporter(store, alone, clock).make(again)
        assert made is not None
        assert made.digest == export.digest


@on_sqlite
async def test_a_file_that_cannot_be_kept_holds_no_other_up(store: SqlStore, tmp_path: Path) -> None:
    job = await finished_job(store, [good(n, {"n": n}) for n in range(3000)], exports=WISHES[:3])
    blobs = Halting.in_folder(tmp_path / "blobs")
    with pytest.raises(Unavailable):
        await Finisher(store, blobs, Exporter(store, blobs, clock), clock).finish(job)
    states = {export.wish.format: export.state for export in await store.exports.of_job(job.id)}
    assert states == {"csv": ExportState.QUEUED, "jsonl": ExportState.DONE, "xlsx": ExportState.DONE}
    assert (await read_metadata(blobs, job.id)).counts["success"] == 3000


@on_sqlite
async def test_manifests_that_cannot_be_kept_hold_no_file_up(store: SqlStore, tmp_path: Path) -> None:
    job = await finished_job(store, [good(n, {"n": n}) for n in range(3000)], exports=WISHES[:2])
    blobs = WithoutManifests.in_folder(tmp_path / "blobs")
    with pytest.raises(Unavailable):
        await Finisher(store, blobs, Exporter(store, blobs, clock), clock).finish(job)
    assert {(export.state, export.rows) for export in await store.exports.of_job(job.id)} == {(ExportState.DONE, 3000)}
    with pytest.raises(NotFound):
        await read_metadata(blobs, job.id)


@on_sqlite
async def test_an_item_whose_result_is_missing_spoils_the_files_and_not_the_manifests(
    store: SqlStore, tmp_path: Path
) -> None:
    items = [good(n, {"n": n}) for n in range(3000)]
    items[700] = replace(items[700], data=None, result_key="jobs/job_1/gone", result_bytes=10)
    job = await finished_job(store, items, exports=WISHES[:2])
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    await Finisher(store, blobs, Exporter(store, blobs, clock), clock).finish(job)
    assert {export.state for export in await store.exports.of_job(job.id)} == {ExportState.FAILED}
    assert (await read_metadata(blobs, job.id)).counts["total"] == 3000


@on_sqlite
async def test_a_file_that_another_makes_holds_no_other_up(store: SqlStore, tmp_path: Path) -> None:
    job = await finished_job(store, [good(n, {"n": n}) for n in range(3000)], exports=WISHES[:2])
    blobs = ObjectBlobs.in_folder(tmp_path / "blobs")
    exporter = Exporter(store, blobs, clock)
    taken = wished_id(job.id, WISHES[0])
    await store.exports.add(Export(id=taken, job_id=job.id, wish=WISHES[0], created_at=NOW))
    assert await store.exports.claim(taken, "another", NOW, NOW + 60)
    finishing = asyncio.create_task(Finisher(store, blobs, exporter, clock).finish(job))
    other = wished_id(job.id, WISHES[1])
    try:
        async with asyncio.timeout(PATIENCE):
            while (found := await store.exports.get(other)) is None or found.state is not ExportState.DONE:
                await asyncio.sleep(0.01)
    finally:
        finishing.cancel()
        await asyncio.gather(finishing, return_exceptions=True)


async def numbers(count: int, fails: bool = False) -> AsyncGenerator[Counted, None]:
    for number in range(count):
        yield b"%d" % number, number
    if fails:
        raise BlobsUnavailable("it went away")


async def read(reader: ItemReader[Counted]) -> list[int]:
    return [number async for _, number in reader]


async def test_every_reader_reads_all_and_one_that_leaves_is_not_waited_for() -> None:
    async with shared(numbers(100), 4) as (quick, slow, leaves, never):
        never.close()

        async def slowly() -> list[int]:
            found = []
            async for _, number in slow:
                await asyncio.sleep(0)
                found.append(number)
            return found

        async def a_few() -> None:
            assert (await anext(leaves))[1] == 0
            leaves.close()
            leaves.close()

        async with asyncio.timeout(PATIENCE):
            first, second, _ = await asyncio.gather(read(quick), slowly(), a_few())
    assert first == second == list(range(100))


async def test_what_ends_the_reading_reaches_every_reader() -> None:
    async with shared(numbers(5, fails=True), 2) as readers:
        ends = await asyncio.gather(*(read(reader) for reader in readers), return_exceptions=True)
    assert [type(end) for end in ends] == [BlobsUnavailable, BlobsUnavailable]


async def test_leaving_the_block_ends_the_reading() -> None:
    source = numbers(1000)
    async with shared(source, 1) as (reader,):
        await anext(reader)
    with pytest.raises(StopAsyncIteration):
        await anext(source)
