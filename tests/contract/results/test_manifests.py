"""Manifests of finished jobs: on every database, in a folder and in a bucket."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.errors import NotFound
from scrapeyard.model import ExitReason
from scrapeyard.model.job import ItemStatus, Job, JobStatus
from scrapeyard.results import artifacts
from scrapeyard.results.feeding import item_blocks
from scrapeyard.results.manifests import JobMetadata, read_metadata, write_manifests
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.sql import SqlStore
from tests.contract.blobs.test_blobs import bucket_settings
from tests.contract.finished_jobs import bad, finished_job, good
from tests.services.seaweed import SeaweedServer


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


async def part(blobs: ObjectBlobs, kind: Any, number: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(await artifacts.read(blobs, keys.manifest("job_1", kind, number)))
    return document


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def some_job(store: SqlStore, count: int = 2300) -> Job:
    items = [bad(n, ExitReason.FETCH_STATUS, 500) if n % 2 else good(n) for n in range(count)]
    return await finished_job(store, items)


async def written(store: SqlStore, blobs: ObjectBlobs, job: Job) -> JobMetadata:
    return await write_manifests(item_blocks(store.items, job.id), blobs, job)


async def test_every_item_is_in_its_parts_once(store: SqlStore, blobs: ObjectBlobs) -> None:
    metadata = await written(store, blobs, await some_job(store))
    parts = {kind: found.parts for kind, found in metadata.manifests.items()}
    assert parts == {"full": 3, "success": 2, "errors": 2}
    for kind, count in (("full", 2300), ("success", 1150), ("errors", 1150)):
        found = [await part(blobs, kind, number) for number in range(1, parts[kind] + 1)]
        assert [document["items"] for document in found[:-1]] == [1000] * (parts[kind] - 1)
        entries = [entry for document in found for entry in document["entries"]]
        assert [entry["seq"] for entry in entries] == sorted({entry["seq"] for entry in entries})
        assert len(entries) == count == metadata.manifests[kind].items
        assert {document["manifest"] for document in found} == {kind}


async def test_an_entry_tells_what_became_of_its_item(store: SqlStore, blobs: ObjectBlobs) -> None:
    await written(store, blobs, await some_job(store, 2))
    first, second = (await part(blobs, "full", 1))["entries"]
    assert first == {
        "item_id": "item-0",
        "seq": first["seq"],
        "status": "success",
        "attempts": 1,
        "exit_reason": "succeeded",
        "started_at": first["started_at"],
        "finished_at": first["finished_at"],
        "input": {"url": "http://shop.example/0"},
        "result": {"title": "Item 0"},
    }
    assert (second["status"], second["exit_reason"]) == ("error", "fetch_status")
    assert second["error"]["site_status"] == 500
    assert "result" not in second


async def test_digests_and_counts_hold(store: SqlStore, blobs: ObjectBlobs) -> None:
    metadata = await written(store, blobs, await some_job(store))
    for kind, found in metadata.manifests.items():
        for file in found.files:
            data = await artifacts.read(blobs, file.key)
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.digest)
            document = json.loads(data)
            body = data[data.index(b'"entries":') + len(b'"entries":') : -2]
            assert hashlib.sha256(body).hexdigest() == document["digest"]
            assert sum(document["counts"].values()) == document["items"] == file.items, kind
    assert metadata.counts["total"] == 2300
    assert metadata.counts["success"] + metadata.counts["error"] == 2300
    assert metadata.exit_reasons == {"fetch_status": 1150, "succeeded": 1150}
    assert metadata.http_statuses == {"500": 1150}
    assert 3 < metadata.duration_seconds < 4
    assert await read_metadata(blobs, "job_1") == metadata


async def test_writing_again_gives_the_same_bytes(store: SqlStore, blobs: ObjectBlobs, tmp_path: Path) -> None:
    job = await some_job(store)
    await written(store, blobs, job)
    before = files(tmp_path / "blobs")
    (tmp_path / "blobs" / "job_1" / "manifests" / "full" / "part-2.json").unlink()
    await written(store, blobs, job)
    assert files(tmp_path / "blobs") == before


async def test_parts_of_an_earlier_end_do_not_stay(store: SqlStore, blobs: ObjectBlobs) -> None:
    job = await some_job(store)
    await written(store, blobs, job)
    await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, 1.7e9)
    assert await store.items.redrive(job.id, ItemFilter(statuses=(ItemStatus.ERROR,)), None, 1.7e9) == 1150
    metadata = await written(store, blobs, job)
    assert metadata.manifests["errors"].parts == 0
    for number in (1, 2):
        with pytest.raises(NotFound):
            await artifacts.read(blobs, keys.manifest("job_1", "errors", number))


async def test_a_job_without_items(store: SqlStore, blobs: ObjectBlobs) -> None:
    job = Job(id="job_1", status=JobStatus.FINISHING, scraper="a/b", pinned="a/b@1.0.0", created_at=1.0)
    metadata = await written(store, blobs, job)
    assert metadata.counts["total"] == 0
    assert {found.parts for found in metadata.manifests.values()} == {0}
    with pytest.raises(NotFound):
        await read_metadata(blobs, "job_2")


@pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
async def test_a_bucket_holds_the_same_layout(store: SqlStore, seaweed_server: SeaweedServer) -> None:
    bucket = seaweed_server.make_bucket()
    blobs = ObjectBlobs.in_bucket(bucket_settings(seaweed_server, bucket))
    await written(store, blobs, await some_job(store))
    plain = seaweed_server.store(bucket, "all/of.it")
    names = {meta["path"] for page in plain.list() for meta in page}
    assert names == {
        "job_1/job_metadata.json",
        *(f"job_1/manifests/full/part-{number}.json" for number in (1, 2, 3)),
        *(f"job_1/manifests/{kind}/part-{number}.json" for kind in ("success", "errors") for number in (1, 2)),
    }
    found = plain.get("job_1/manifests/full/part-1.json")
    assert dict(found.attributes) == {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert json.loads(gzip.decompress(bytes(found.bytes())))["items"] == 1000
