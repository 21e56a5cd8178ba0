"""What jobs came to, by HTTP: manifests in parts, exports with ranges, artifacts as they lie in the store."""

import gzip
import hashlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.model import ExitReason
from scrapeyard.model.export import Export
from scrapeyard.model.job import BatchItem, ExportWish, ItemOutcome, JobStatus
from scrapeyard.results import artifacts
from scrapeyard.results.exporter import Exporter
from scrapeyard.results.finishing import Finisher
from scrapeyard.results.running_manifests import RunningManifests
from tests.integration import job_desk
from tests.integration.gateway_stand import Stand, open_stand
from tests.integration.job_desk import get, post, read, urls, work


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def finish(stand: Stand, job_id: str) -> None:
    """Do what the dispatcher does once every item has ended."""
    exporter = Exporter(stand.store, stand.blobs, time.time)
    await stand.store.jobs.move(job_id, JobStatus.RUNNING, JobStatus.FINISHING, time.time())
    job = await stand.store.jobs.get(job_id)
    assert job is not None
    await Finisher(stand.store, stand.blobs, exporter, time.time).finish(job)
    await stand.store.jobs.move(job_id, JobStatus.FINISHING, JobStatus.COMPLETED, time.time())


async def test_a_cancelled_job_names_its_manifests_once_its_own_are_written(stand: Stand) -> None:
    job = await post(stand.client, items=urls(3), scraper="shop/product")
    place = f"/api/jobs/{job['id']}"
    await work(stand.store, job["id"], lambda _: ExitReason.SUCCEEDED)
    await finish(stand, job["id"])
    await post(stand.client, f"{place}/redrive", statuses=["success"], keys=[(await items(stand, place))[0]["id"]])
    cancelled = await post(stand.client, f"{place}/cancel")
    assert (cancelled["status"], cancelled["files_pending"]) == ("cancelled", True)
    assert (await get(stand.client, f"{place}/results"))["manifests"] == {}  # those of the first end are out of date
    found = await stand.store.jobs.get(job["id"])
    assert found is not None
    await Finisher(stand.store, stand.blobs, Exporter(stand.store, stand.blobs, time.time), time.time).finish(found)
    assert await stand.store.jobs.files_written(found)
    assert (await get(stand.client, place))["files_pending"] is False
    summary = await get(stand.client, f"{place}/results")
    assert {kind: one["items"] for kind, one in summary["manifests"].items()} == {"full": 3, "success": 2, "errors": 0}


async def items(stand: Stand, place: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await get(stand.client, f"{place}/items"))["items"]
    return found


async def test_results_are_the_parts_that_exist(stand: Stand) -> None:
    job = await post(stand.client, items=urls(3), scraper="shop/product")
    place = f"/api/jobs/{job['id']}/results"
    assert (await get(stand.client, place))["manifests"] == {}
    assert (await stand.client.get(place, params={"part": 1})).status_code == 404
    await work(stand.store, job["id"], lambda item: ExitReason.FAILED if item.seq else ExitReason.SUCCEEDED)
    await finish(stand, job["id"])
    summary = await get(stand.client, place)
    assert summary["exit_reasons"] == {"failed": 2, "succeeded": 1}
    assert {kind: found["items"] for kind, found in summary["manifests"].items()} == {
        "full": 3,
        "success": 1,
        "errors": 2,
    }
    assert list((await get(stand.client, place, status="error"))["manifests"]) == ["errors"]
    for found in summary["manifests"].values():
        for part in found["parts"]:
            response = await stand.client.get(part["href"])
            assert hashlib.sha256(response.content).hexdigest() == part["sha256"]
            assert len(response.json()["entries"]) == part["items"]
    assert (await stand.client.get(place, params={"part": 2})).json()["code"] == "not_found"
    assert (await stand.client.get(place, params={"status": "no"})).status_code == 422


async def test_a_job_with_objects_has_results_while_it_runs(stand: Stand) -> None:
    policy = {"results": "objects", "breaker": {"enabled": False}}
    job = await post(stand.client, items=urls(1100), scraper="shop/product", policy=policy)
    place = f"/api/jobs/{job['id']}"
    await read(stand.store, stand.services.intake, job["id"])
    await work(stand.store, job["id"], lambda item: ExitReason.SUCCEEDED if item.seq % 2 else ExitReason.FAILED)
    await RunningManifests(stand.store, stand.blobs, time.time).run_once()
    summary = await get(stand.client, f"{place}/results")
    assert (summary["status"], summary["complete"], summary["exit_reasons"]) == ("running", False, None)
    assert {kind: one["items"] for kind, one in summary["manifests"].items()} == {
        "full": 1000,
        "success": 0,
        "errors": 0,
    }
    (part,) = summary["manifests"]["full"]["parts"]
    running = await stand.client.get(part["href"])
    assert hashlib.sha256(running.content).hexdigest() == part["sha256"]
    await finish(stand, job["id"])
    whole = await get(stand.client, f"{place}/results")
    assert (whole["complete"], whole["manifests"]["full"]["items"]) == (True, 1100)
    assert (await stand.client.get(part["href"])).content == running.content
    await post(stand.client, f"{place}/redrive")
    assert (await get(stand.client, f"{place}/results"))["manifests"] == {}


async def test_an_export_is_wished_for_made_and_downloaded(stand: Stand) -> None:
    job = await post(stand.client, items=urls(20), scraper="shop/product")
    await work(stand.store, job["id"])
    response = await stand.client.post(f"/api/jobs/{job['id']}/exports", json={"type": "records", "format": "csv"})
    assert (response.status_code, response.json()["state"]) == (202, "queued")
    place = response.headers["location"]
    refused = await stand.client.get(f"{place}/download")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await Exporter(stand.store, stand.blobs, time.time).make(response.json()["id"])
    export = await get(stand.client, place)
    assert (export["state"], export["rows"], export["progress"]) == ("done", 20, 1)
    whole = await stand.client.get(export["links"]["download"])
    assert hashlib.sha256(whole.content).hexdigest() == export["sha256"]
    assert len(whole.content) == export["bytes"] == int(whole.headers["content-length"])
    assert whole.headers["content-type"] == "text/csv; charset=utf-8"
    assert f'filename="{export["filename"]}"' in whole.headers["content-disposition"]
    assert [found["id"] for found in (await get(stand.client, f"/api/jobs/{job['id']}/exports"))["exports"]] == [
        export["id"]
    ]


@pytest.fixture
async def export(stand: Stand) -> Export:
    job = await post(stand.client, items=urls(5), scraper="shop/product")
    await work(stand.store, job["id"])
    wish = ExportWish(type="full", format="jsonl")
    exporter = Exporter(stand.store, stand.blobs, time.time)
    await stand.store.exports.add(Export(id="export_" + "0" * 32, job_id=job["id"], wish=wish, created_at=1.0))
    made = await exporter.make("export_" + "0" * 32)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("asked", "first", "end"),
    [("bytes=0-9", 0, 10), ("bytes=10-", 10, None), ("bytes=-7", -7, None), ("bytes=5-99999999", 5, None)],
)
async def test_a_download_goes_on_where_it_broke_off(
    stand: Stand, export: Export, asked: str, first: int, end: int | None
) -> None:
    place = f"/api/exports/{export.id}/download"
    whole = (await stand.client.get(place)).content
    part = await stand.client.get(place, headers={"range": asked, "if-range": f'"{export.digest}"'})
    assert part.status_code == 206
    assert part.content == whole[first:end]
    start = first % len(whole)
    assert part.headers["content-range"] == f"bytes {start}-{start + len(part.content) - 1}/{len(whole)}"
    assert part.headers["content-length"] == str(len(part.content))


@pytest.mark.parametrize(
    "headers", [{"range": "bytes=3-1"}, {"range": "lines=0-1"}, {"range": "bytes=0-1", "if-range": '"older"'}]
)
async def test_a_range_that_means_nothing_gives_the_whole(
    stand: Stand, export: Export, headers: dict[str, str]
) -> None:
    response = await stand.client.get(f"/api/exports/{export.id}/download", headers=headers)
    assert (response.status_code, len(response.content)) == (200, export.bytes)


async def test_a_range_beyond_the_end_is_refused(stand: Stand, export: Export) -> None:
    response = await stand.client.get(f"/api/exports/{export.id}/download", headers={"range": "bytes=999999999-"})
    assert (response.status_code, response.json()["code"]) == (416, "bad_range")


async def test_artifacts_are_sent_as_they_lie_or_unpacked(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await post(stand.client, items=[{"item_id": "a", "url": urls(1)[0]}], scraper="shop/product")
    page = b"<p>" + b"tea " * 1000
    kept = await artifacts.keep(stand.blobs, job["id"], "a", keys.HTML, page, "text/html; charset=utf-8")
    data = json.dumps({"text": "x" * 5000}).encode()
    await artifacts.put(stand.blobs, keys.item_object(job["id"], "a", keys.DATA), data, "application/json")

    def outcome(item: BatchItem, reason: ExitReason) -> ItemOutcome:
        plain = outcome_of(item, reason)
        key = keys.item_object(job["id"], "a", keys.DATA)
        return replace(plain, result=None, result_key=key, result_bytes=len(data), artifacts=(kept,))

    outcome_of = job_desk.outcome_of
    monkeypatch.setattr(job_desk, "outcome_of", outcome)
    await work(stand.store, job["id"])
    place = f"/api/jobs/{job['id']}/items/a"
    item = await get(stand.client, place)
    assert [(one["name"], one["size"]) for one in item["artifacts"]] == [
        ("data.json", len(data)),
        ("html.html", len(page)),
    ]
    assert item["result"] is None
    for name, expected in (("html", page), ("html.html", page), ("data", data)):
        plain = await stand.client.get(f"{place}/download?artifact={name}", headers={"accept-encoding": "identity"})
        assert (plain.content, "content-encoding" in plain.headers) == (expected, False)
        packed = await _raw(stand, f"{place}/download?artifact={name}")
        assert gzip.decompress(packed) == expected
    assert (await stand.client.get(f"{place}/download?artifact=screenshot")).status_code == 404
    html = await stand.client.get(f"{place}/download?artifact=html")
    assert (html.headers["content-type"], html.headers["x-content-type-options"]) == (
        "text/html; charset=utf-8",
        "nosniff",
    )
    assert "sandbox" in html.headers["content-security-policy"]


async def _raw(stand: Stand, path: str) -> bytes:
    """As it goes over the wire."""
    async with stand.client.stream("GET", path, headers={"accept-encoding": "gzip"}) as response:
        assert response.headers["content-encoding"] == "gzip"
        return b"".join([piece async for piece in response.aiter_raw()])


async def test_there_is_no_such_thing(stand: Stand) -> None:
    nobody: dict[str, Any] = {"job": "job_" + "0" * 32, "export": "export_" + "0" * 32}
    for path in (
        f"/api/jobs/{nobody['job']}/results",
        f"/api/jobs/{nobody['job']}/exports",
        f"/api/jobs/{nobody['job']}/items",
        f"/api/exports/{nobody['export']}",
        f"/api/exports/{nobody['export']}/download",
    ):
        response = await stand.client.get(path)
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), path
    wish = await stand.client.post(f"/api/jobs/{nobody['job']}/exports", json={"type": "full", "format": "csv"})
    assert wish.status_code == 404
