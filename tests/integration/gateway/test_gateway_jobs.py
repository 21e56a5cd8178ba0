"""Jobs by HTTP: made from lists and addresses, steered, run again, deleted."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from scrapeyard.blobs import keys
from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.inputs.importer import ItemImporter
from scrapeyard.inputs.reading import ReadSources
from scrapeyard.inputs.source import source_of
from scrapeyard.model import ExitReason
from scrapeyard.model.job import Batch, JobStatus
from scrapeyard.queues import messages
from scrapeyard.repository.manifest.json_schemas import InputChecker
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import Stand, open_stand, worker, write_scraper
from tests.integration.job_desk import get, outcome_of, post, read, urls, work
from tests.leaks import PATIENCE


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    settings = Settings(gateway=GatewaySettings(max_body_mb=1, max_upload_mb=4, cors_origins=("https://ours.example",)))
    async with open_stand(tmp_path, settings) as opened:
        yield opened


async def refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code
    assert problem["title"]
    assert problem["remedy"]
    return problem


async def test_a_short_list_is_read_before_the_answer_however_soon_a_dispatcher_looks(stand: Stand) -> None:
    services = stand.services
    intake = ItemImporter(
        store=services.store,
        blobs=services.blobs,
        engine=WreqEngine(stand.settings.http, sessions=stand.store.sessions),
        catalogue=services.catalogue,
        checker=InputChecker(),
        holder="dispatcher",
    )
    reading, over = ReadSources(services.store.jobs, intake, time.time), asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            await reading.run_once()

    looking = asyncio.create_task(look())
    try:
        jobs = [await post(stand.client, scraper="shop/product", items=urls(2)) for _ in range(20)]
    finally:
        over.set()
        await looking
        await reading.stop()
    assert [(job["status"], job["counts"]["total"]) for job in jobs] == [("running", 2)] * 20


async def test_items_in_the_body_become_a_job(stand: Stand) -> None:
    items = [*urls(2), {"item_id": "third", "input": {"url": "https://shop.example/p/3"}}, {"url": urls(1)[0]}]
    response = await stand.client.post(
        "/api/jobs",
        json={
            "scraper": "shop/product@^1.4",
            "items": items,
            "name": "spring",
            "owner": "sales",
            "priority": "high",
            "policy": {"rate": 10, "retries": 4, "proxy": "home", "budget": {"requests": 9}, "breaker": {"window": 7}},
            "exports": [{"type": "full", "format": "csv"}, {"type": "full", "format": "csv"}],
            "webhook": {"url": "https://hooks.example/x", "secret": "sixteen letters!".replace(" ", "-")},
        },
    )
    job = response.json()
    assert response.status_code == 201, response.text
    assert response.headers["location"] == f"/api/jobs/{job['id']}"
    assert job["rows"] == {"taken": 4, "bad": 0, "first_bad": []}
    assert job["counts"] | {"total": 3, "pending": 3} == job["counts"]
    assert (job["status"], job["scraper"], job["version"]) == ("running", "shop/product", "1.4.2")
    assert job["skipped_rows"] == 1
    assert job["policy"]["max_attempts"] == 5
    assert job["policy"]["fetching"]["proxy"] == "home"
    assert job["policy"]["budget"] == {"requests": 9}
    assert job["policy"]["breaker"]["window"] == 7
    assert len(job["exports"]) == 1
    assert job["webhook"] == {
        "url": "https://hooks.example/x",
        "events": ["job.completed", "job.failed", "job.cancelled"],
        "signed": True,
    }
    assert "sixteen" not in response.text
    shown = {k: v for k, v in job.items() if k != "rows"}
    assert await get(stand.client, response.headers["location"]) == shown | {"sink_deliveries": []}


async def test_a_job_keeps_the_version_it_was_made_with(stand: Stand, tmp_path: Path) -> None:
    job = await post(stand.client, scraper="shop/product", items=urls(1))
    write_scraper(tmp_path, "1.5.0")
    await stand.services.catalogue.refresh()
    newer = await post(stand.client, scraper="shop/product", items=urls(1))
    assert (job["version"], newer["version"]) == ("1.4.2", "1.5.0")
    assert (await get(stand.client, f"/api/jobs/{job['id']}"))["version"] == "1.4.2"
    await work(stand.store, job["id"], lambda _: ExitReason.FAILED)
    again = await post(stand.client, f"/api/jobs/{job['id']}/redrive", scraper="shop/product@1.5.0", policy={"rate": 3})
    assert (again["items"], again["job"]["version"]) == (1, "1.5.0")
    assert again["job"]["policy"]["rate"] == 3
    assert again["job"]["policy"]["max_attempts"] == job["policy"]["max_attempts"]


async def test_bad_rows_refuse_the_job_or_are_left_out(stand: Stand) -> None:
    items: list[Any] = [*urls(1), {"nothing": 1}, 7]
    refusal = await stand.client.post("/api/jobs", json={"items": items})
    problem = await refused(refusal, 400, "bad_rows")
    assert [row["line"] for row in problem["rows"]] == [2, 3]
    assert (await get(stand.client, "/api/jobs"))["jobs"] == []
    job = await post(stand.client, items=items, bad_rows="skip")
    assert job["rows"]["bad"] == 2
    assert job["rows"]["first_bad"][0]["line"] == 2
    assert (job["counts"]["total"], job["skipped_rows"]) == (1, 2)


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({}, 422, "exactly one"),
        ({"items": urls(1), "items_url": urls(1)[0]}, 422, "not items and items_url"),
        ({"items": urls(1), "follow": {"depth": 1}}, 422, "follow goes with start_url"),
        ({"items": []}, 422, "at least 1"),
        ({"items": urls(1), "policy": {"rate": 0}}, 422, "greater than 0"),
        ({"items": urls(1), "policy": {"nonsense": 1}}, 422, "nonsense"),
        ({"items": urls(1), "exports": [{"type": "full", "format": "doc"}]}, 422, "/exports/0/format"),
        ({"items": urls(1), "lane": "nobody"}, 400, "no worker takes lane nobody"),
        ({"items": urls(1), "scraper": "no/such"}, 404, "no/such"),
        ({"sitemap_url": "https://shop.example/", "sitemap": {"include": ["re:(?=x)"]}}, 400, "include"),
        ({"sitemap_url": "https://shop.example/", "sitemap": {"modified_since": "1700000000"}}, 422, "ISO 8601"),
        ({"start_url": "https://shop.example/", "scraper": "shop/product", "input": {"currency": 7}}, 400, "currency"),
    ],
)
async def test_what_cannot_be_taken_is_refused_and_leaves_nothing(
    stand: Stand, tmp_path: Path, body: dict[str, Any], status: int, told: str
) -> None:
    response = await stand.client.post("/api/jobs", json=body)
    assert response.status_code == status, response.text
    assert told in response.text
    assert (await get(stand.client, "/api/jobs"))["jobs"] == []
    assert not [found for found in (tmp_path / "blobs").rglob("*") if found.is_file()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"items_url": "https://shop.example/list.csv"}, "reject"),
        ({"sitemap_url": "https://shop.example/"}, "skip"),
        ({"sitemap_url": "https://shop.example/", "bad_rows": "reject"}, "reject"),
        ({"start_url": "https://shop.example/"}, "skip"),
        ({"start_url": "https://shop.example/", "bad_rows": "reject"}, "reject"),
        ({"items": urls(1)}, "reject"),
    ],
)
async def test_bad_rows_of_what_a_site_lists_are_left_out_unless_the_call_says(
    stand: Stand, given: dict[str, Any], expected: str
) -> None:
    job = await post(stand.client, **given)
    found = await stand.store.jobs.get(job["id"])
    assert found is not None
    assert source_of(found).shape.bad_rows == expected


@pytest.mark.parametrize(
    ("exports", "expected"),
    [
        ("full:csv,seo:xlsx", [("full", "csv"), ("seo", "xlsx")]),
        (" records:jsonl , full:csv,full:csv", [("records", "jsonl"), ("full", "csv")]),
        ('[{"type": "diff", "format": "csv"}]', [("diff", "csv")]),
    ],
)
async def test_exports_of_an_upload_have_a_short_form(
    stand: Stand, exports: str, expected: list[tuple[str, str]]
) -> None:
    job = (await uploaded(stand, exports)).json()
    assert [(wish["type"], wish["format"]) for wish in job["exports"]] == expected


@pytest.mark.parametrize(
    ("exports", "place"),
    [
        ("", "/exports/0/type"),
        ("full", "/exports/0/format"),
        ("csv", "/exports/0/type"),
        ("full:csv,", "/exports/1/type"),
        ("full:csv,seo:doc", "/exports/1/format"),
        ("full:csv:xlsx", "/exports/0/format"),
        ("full:csv;seo:xlsx", "/exports/0/format"),
        (",".join(["full:csv"] * 21), "/exports"),
        ('{"type": "full", "format": "csv"}', "/exports"),
    ],
)
async def test_exports_that_are_none_are_told_by_their_place(stand: Stand, exports: str, place: str) -> None:
    problem = await refused(await uploaded(stand, exports), 422, "invalid")
    assert place in [error["path"] for error in problem["errors"]]
    assert (await get(stand.client, "/api/jobs"))["jobs"] == []


async def uploaded(stand: Stand, exports: str) -> httpx.Response:
    headers = {"content-type": "text/csv"}
    query = {"scraper": "shop/product", "exports": exports}
    return await stand.client.post("/api/jobs", content=LISTS["text/csv"], headers=headers, params=query)


async def test_the_query_is_for_uploads_alone(stand: Stand) -> None:
    response = await stand.client.post("/api/jobs", json={"items": urls(1)}, params={"name": "x"})
    assert "leave the query empty" in (await refused(response, 400, "bad_request"))["detail"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "give exactly one of"),
        ({"items": []}, "/items: must have at least 1"),
        ({"items": urls(1), "colour": "red"}, "/colour: unknown field"),
        ({"items": urls(1), "policy": 5}, "/policy: must be a JSON object"),
        ("all of it", "must be a JSON object"),
    ],
)
async def test_what_is_wrong_with_a_call_is_told_in_plain_words(stand: Stand, body: Any, words: str) -> None:
    detail = (await refused(await stand.client.post("/api/jobs", json=body), 422, "invalid"))["detail"]
    assert words in detail
    assert not any(own in detail for own in ("Value error", "instance of", "validation", "JobCall"))


async def test_a_bare_list_is_told_how_to_write_it(stand: Stand) -> None:
    response = await stand.client.post("/api/jobs", json=urls(1))
    assert '{"items": […]}' in (await refused(response, 400, "bad_request"))["detail"]


LISTS = {
    "text/csv": b"url,currency\n" + b"".join(b"https://shop.example/p/%d,EUR\n" % n for n in range(3)),
    "application/x-ndjson": b"".join(b'{"url": "https://shop.example/p/%d"}\n' % n for n in range(3)),
    "text/plain": b"".join(b"https://shop.example/p/%d\n" % n for n in range(3)),
}


@pytest.mark.parametrize("media", LISTS)
async def test_a_list_is_uploaded_as_it_is(stand: Stand, media: str) -> None:
    query = {
        "scraper": "shop/product",
        "name": "list",
        "policy": '{"rate": 5}',
        "exports": '[{"type":"full","format":"csv"}]',
    }
    response = await stand.client.post("/api/jobs", content=LISTS[media], headers={"content-type": media}, params=query)
    job = response.json()
    assert response.status_code == 201, response.text
    assert job["counts"]["total"] == 3
    assert (job["name"], job["policy"]["rate"], job["exports"][0]["type"]) == ("list", 5, "full")
    found = await get(stand.client, f"/api/jobs/{job['id']}/items")
    assert [item["input"]["url"] for item in found["items"]] == [f"https://shop.example/p/{n}" for n in range(3)]


@pytest.mark.parametrize("packed", [False, True])
async def test_a_form_brings_one_file(stand: Stand, packed: bool) -> None:
    text = gzip.compress(LISTS["text/csv"]) if packed else LISTS["text/csv"]
    response = await stand.client.post(
        "/api/jobs", files={"file": ("C:\\lists\\items.csv", text, "text/csv")}, params={"scraper": "shop/product"}
    )
    assert response.status_code == 201, response.text
    assert response.json()["counts"]["total"] == 3
    assert response.json()["source"]["name"] == "items.csv"


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ("attachment; filename*=UTF-8''Lampe%20gro%C3%9F.csv", "Lampe groß.csv"),
        ('attachment; filename="../../a%00b.csv"', "a%00b.csv"),
        ("attachment; filename*=UTF-8''a%00b.csv", "ab.csv"),
        ("attachment; filename*=idna''%ff", ""),
        (";;==", ""),
    ],
)
async def test_a_plain_body_may_name_its_file(stand: Stand, disposition: str, name: str) -> None:
    headers = {"content-type": "text/csv", "content-disposition": disposition}
    response = await stand.client.post("/api/jobs", content=LISTS["text/csv"], headers=headers)
    assert response.status_code == 201, response.text
    assert response.json()["source"].get("name", "") == name


async def test_a_form_with_more_than_the_file_is_refused(stand: Stand) -> None:
    response = await stand.client.post("/api/jobs", files={"file": ("a.csv", b"url\nx\n")}, data={"name": "x"})
    assert "curl -F file=@items.csv" in (await refused(response, 400, "bad_request"))["detail"]


async def test_pages_from_elsewhere_upload_nothing(stand: Stand) -> None:
    def upload(origin: str) -> Any:
        headers = {"content-type": "text/plain", "origin": origin}
        return stand.client.post("/api/jobs", content=LISTS["text/plain"], headers=headers)

    await refused(await upload("https://evil.example"), 403, "origin_refused")
    assert (await upload("https://ours.example")).status_code == 201
    assert (await upload("http://gateway")).status_code == 201


async def test_uploads_have_a_limit_of_their_own(stand: Stand) -> None:
    def large(megabytes: int) -> bytes:
        return b"".join(b"https://shop.example/%0100d\n" % number for number in range(megabytes * 10_000))

    await refused(await stand.client.post("/api/jobs", json={"items": ["x" * 2**20]}), 413, "too_large")
    headers = {"content-type": "text/plain"}
    response = await stand.client.post("/api/jobs", content=large(2), headers=headers)
    assert response.status_code == 201, response.text
    assert response.json()["rows"]["taken"] == 20_000
    await refused(await stand.client.post("/api/jobs", content=large(5), headers=headers), 413, "too_large")

    async def undeclared() -> AsyncIterator[bytes]:
        yield large(5)

    await refused(await stand.client.post("/api/jobs", content=undeclared(), headers=headers), 413, "too_large")
    assert len((await get(stand.client, "/api/jobs"))["jobs"]) == 1


async def test_a_long_list_lies_ready_before_the_answer_and_is_read_afterwards(stand: Stand) -> None:
    lines = b"".join(b"https://shop.example/p/%d\n" % number for number in range(2500))
    response = await stand.client.post("/api/jobs", content=lines, headers={"content-type": "text/plain"})
    job = response.json()
    assert (job["status"], job["reading"], job["counts"]["total"]) == ("creating", True, 0)
    assert await stand.blobs.size(keys.job_list(job["id"])) is not None
    done = await read(stand.store, stand.services.intake, job["id"])
    assert (done.status, done.counts.total) == (JobStatus.RUNNING, 2500)


async def test_the_same_key_makes_one_job(stand: Stand) -> None:
    headers = {"idempotency-key": "k1"}
    body = {"items": urls(2)}
    first = await stand.client.post("/api/jobs", json=body, headers=headers)
    second = await stand.client.post("/api/jobs", json=body, headers=headers)
    assert (first.json()["id"], second.headers["idempotency-replayed"]) == (second.json()["id"], "true")
    assert "idempotency-replayed" not in first.headers
    other = await stand.client.post("/api/jobs", json={"items": urls(3)}, headers=headers)
    await refused(other, 422, "idempotency_conflict")
    assert len((await get(stand.client, "/api/jobs"))["jobs"]) == 1
    upload: dict[str, Any] = {
        "content": LISTS["text/csv"],
        "headers": {"content-type": "text/csv", "idempotency-key": "k2"},
    }
    uploads = [await stand.client.post("/api/jobs?scraper=shop/product", **upload) for _ in range(2)]
    assert uploads[0].json()["id"] == uploads[1].json()["id"]
    assert len((await get(stand.client, "/api/jobs"))["jobs"]) == 2


async def test_a_call_killed_between_key_and_job_is_finished_when_it_comes_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(_: Any) -> bool:
        raise ConnectionError("killed")

    headers = {"idempotency-key": "k1"}
    with monkeypatch.context() as broken:
        broken.setattr(stand.store.jobs, "create", killed)
        with capture_logs():  # a traceback in colours takes longer than all the rest
            assert (await stand.client.post("/api/jobs", json={"items": urls(3)}, headers=headers)).status_code == 500
    assert (await get(stand.client, "/api/jobs"))["jobs"] == []
    again = await stand.client.post("/api/jobs", json={"items": urls(3)}, headers=headers)
    assert again.status_code == 201, again.text
    job = await read(stand.store, stand.services.intake, again.json()["id"])
    assert job.counts.total == 3
    assert len((await get(stand.client, "/api/jobs"))["jobs"]) == 1


async def test_a_key_of_a_deleted_job_makes_no_new_one(stand: Stand) -> None:
    headers = {"idempotency-key": "k1"}
    job = (await stand.client.post("/api/jobs", json={"items": urls(1)}, headers=headers)).json()
    await post(stand.client, f"/api/jobs/{job['id']}/cancel")
    assert (await stand.client.delete(f"/api/jobs/{job['id']}")).status_code == 204
    again = await stand.client.post("/api/jobs", json={"items": urls(1)}, headers=headers)
    assert "deleted" in (await refused(again, 409, "conflict"))["detail"]


async def test_items_are_appended_once(stand: Stand, tmp_path: Path) -> None:
    job = await post(stand.client, items=urls(2), scraper="shop/product")
    place = f"/api/jobs/{job['id']}/items"
    assert await post(stand.client, place, items=urls(3)) == {"added": 1, "twice": 2, "bad": 0, "first_bad": []}
    upload: dict[str, Any] = {
        "content": LISTS["text/csv"],
        "headers": {"content-type": "text/csv", "idempotency-key": "a"},
    }
    first, second = [(await stand.client.post(place, **upload)).json() for _ in range(2)]
    assert first == second == {"added": 3, "twice": 0, "bad": 0, "first_bad": []}
    assert (await get(stand.client, f"/api/jobs/{job['id']}"))["counts"]["total"] == 6
    refusal = await stand.client.post(place, json={"items": [{"nothing": 1}, *urls(1, 50)]})
    await refused(refusal, 400, "bad_rows")
    await work(stand.store, job["id"])
    assert await stand.store.jobs.move(job["id"], JobStatus.RUNNING, JobStatus.FINISHING, 1.0)
    await refused(await stand.client.post(place, json={"items": urls(1, 90)}), 409, "conflict")
    assert not [found for found in (tmp_path / "blobs").rglob("*") if found.is_file()]


async def test_a_job_is_paused_and_goes_on(stand: Stand) -> None:
    job = await post(stand.client, items=urls(3), paused=True)
    place = f"/api/jobs/{job['id']}"
    assert (job["status"], job["counts"]["total"], job["reading"]) == ("paused", 3, False)
    assert await work(stand.store, job["id"]) == 0
    async with stand.queue.listen(messages.FEED) as heard:
        assert (await post(stand.client, f"{place}/resume"))["status"] == "running"
        await asyncio.wait_for(anext(heard), PATIENCE)
    for _ in range(2):
        paused = await post(stand.client, f"{place}/pause")
        assert (paused["status"], paused["pause_reason"]) == ("paused", "paused by a call")
    await post(stand.client, f"{place}/resume")
    assert await work(stand.store, job["id"]) == 3
    told = [json.loads(bytes(event.data))["status"] for event in await stand.store.events.after(job["id"], 0, 100)]
    assert told == ["running", "paused", "running"]


async def test_a_job_is_paused_while_its_source_is_read(stand: Stand) -> None:
    lines = b"".join(b"https://shop.example/p/%d\n" % number for number in range(1500))
    job = (await stand.client.post("/api/jobs", content=lines, headers={"content-type": "text/plain"})).json()
    await post(stand.client, f"/api/jobs/{job['id']}/pause")
    done = await read(stand.store, stand.services.intake, job["id"])
    assert (done.status, done.counts.total, done.reading) == (JobStatus.PAUSED, 1500, False)


async def test_a_job_is_cancelled_and_only_then_deleted(stand: Stand) -> None:
    job = await post(stand.client, items=urls(3))
    place = f"/api/jobs/{job['id']}"
    await refused(await stand.client.delete(place), 409, "conflict")
    for _ in range(2):
        cancelled = await post(stand.client, f"{place}/cancel")
        assert (cancelled["status"], cancelled["counts"]["cancelled"]) == ("cancelled", 3)
    await refused(await stand.client.post(f"{place}/pause"), 409, "conflict")
    await stand.blobs.put(keys.item_object(job["id"], "a", keys.HTML), b"<p>", "text/html")
    assert (await stand.client.delete(place)).status_code == 204
    await refused(await stand.client.get(place), 404, "not_found")
    await refused(await stand.client.delete(place), 404, "not_found")
    assert await stand.blobs.size(keys.item_object(job["id"], "a", keys.HTML)) is None


async def test_killing_tells_the_workers(stand: Stand) -> None:
    job = await post(stand.client, items=urls(1))
    await stand.store.batches.cut(Batch(id="batch_1", job_id=job["id"], left=1, queued_at=1.0), 1.0)
    await stand.store.batches.take("batch_1", "w1", 1.0, 9e9)
    async with stand.queue.listen(messages.SIGNALS) as heard:
        stopping = await post(stand.client, f"/api/jobs/{job['id']}/cancel?mode=kill")
        assert stopping["status"] == "cancelling"
        signal = messages.decode_signal(await asyncio.wait_for(anext(heard), PATIENCE))
    assert (type(signal).__name__, signal.job_id) == ("CancelJob", job["id"])  # type: ignore[union-attr]


async def test_items_are_run_again_by_what_they_were(stand: Stand) -> None:
    job = await post(stand.client, items=[{"item_id": f"k{n}", "url": url} for n, url in enumerate(urls(4))])
    ends = [ExitReason.SUCCEEDED, ExitReason.FETCH_TIMEOUT, ExitReason.FETCH_TIMEOUT, ExitReason.FAILED]
    await work(stand.store, job["id"], lambda item: ends[item.seq])
    redrive = f"/api/jobs/{job['id']}/redrive"
    assert (await post(stand.client, redrive, exit_reasons=["fetch_timeout"], keys=["k1", "k3"]))["items"] == 1
    assert (await post(stand.client, redrive, sites=["other.example"]))["items"] == 0
    assert (await post(stand.client, redrive, statuses=["success"]))["items"] == 1
    assert (await post(stand.client, redrive))["items"] == 2
    done = await get(stand.client, f"/api/jobs/{job['id']}")
    assert (done["status"], done["counts"]["pending"]) == ("running", 4)


async def test_items_are_searched_by_words_of_their_input_and_result(stand: Stand) -> None:
    addresses = [f"https://shop.example/{'Ümlaut' if number == 130 else number}" for number in range(150)]
    job = await post(stand.client, items=[{"item_id": f"k{n}", "url": url} for n, url in enumerate(addresses)])
    await work(stand.store, job["id"], lambda item: ExitReason.SUCCEEDED)
    place = f"/api/jobs/{job['id']}/items"
    assert [item["id"] for item in (await get(stand.client, place, q="ümLAUT"))["items"]] == ["k130"]
    assert [item["id"] for item in (await get(stand.client, place, q='"number":77'))["items"]] == ["k77"]
    first = await get(stand.client, place, q="ümlaut", limit=2)
    assert (first["items"], bool(first["next_cursor"])) == ([], True)
    then = await get(stand.client, place, q="ümlaut", limit=2, cursor=first["next_cursor"])
    assert [item["id"] for item in then["items"]] == ["k130"]
    nothing = await get(stand.client, place, q="nowhere")
    assert (nothing["items"], nothing["next_cursor"]) == ([], None)


async def test_items_and_dead_letters_are_paged_and_filtered(stand: Stand) -> None:
    job = await post(stand.client, items=[{"item_id": f"k{n}", "url": url} for n, url in enumerate(urls(5))])
    await work(stand.store, job["id"], lambda item: ExitReason.FAILED if item.seq % 2 else ExitReason.SUCCEEDED)
    place = f"/api/jobs/{job['id']}/items"
    page = await get(stand.client, place, limit=3)
    rest = await get(stand.client, place, limit=3, cursor=page["next_cursor"])
    assert [item["id"] for item in page["items"] + rest["items"]] == [f"k{n}" for n in range(5)]
    assert rest["next_cursor"] is None
    bad = await get(stand.client, place, status="error", exit_reason="failed", site="shop.example")
    assert [item["id"] for item in bad["items"]] == ["k1", "k3"]
    later = await get(stand.client, place, first=3)
    assert [item["id"] for item in later["items"]] == ["k3", "k4"]
    assert (await get(stand.client, place, http_status=403))["items"] == []
    (group,) = (await get(stand.client, f"/api/jobs/{job['id']}/errors"))["groups"]
    assert (group["exit_reason"], group["site"], group["count"]) == ("failed", "shop.example", 2)
    assert (group["http_status"], group["example"]["id"]) == (None, "k1")
    one = await get(stand.client, f"{place}/k0")
    assert (one["result"], one["status"], one["logs"]) == ({"title": "Tea", "number": 0}, "success", [])
    download = await stand.client.get(one["artifacts"][0]["href"])
    assert (download.json(), download.headers["content-type"]) == (one["result"], "application/json")
    assert download.headers["content-disposition"].startswith("attachment")
    await refused(await stand.client.get(f"{place}/k1/download"), 404, "not_found")
    await refused(await stand.client.get(f"{place}/nobody"), 404, "not_found")
    await refused(await stand.client.get(place, params={"cursor": "nonsense"}), 400, "bad_request")
    letters = await get(stand.client, "/api/dead-letters", limit=1)
    assert (letters["items"][0]["id"], letters["items"][0]["job_id"]) == ("k3", job["id"])
    assert letters["next_cursor"]
    for fits, other in (
        ({"job_id": job["id"]}, {"job_id": f"job_{'0' * 32}"}),
        ({"scraper": "builtin/page"}, {"scraper": "shop/product"}),
        ({"exit_reason": "failed"}, {"exit_reason": "timeout"}),
        ({"site": "shop.example"}, {"site": "other.example"}),
    ):
        found = await get(stand.client, "/api/dead-letters", **fits)
        assert [item["id"] for item in found["items"]] == ["k3", "k1"]
        assert (await get(stand.client, "/api/dead-letters", **other))["items"] == []


async def test_the_listing_and_the_stats_tell_what_goes_on(stand: Stand) -> None:
    await stand.store.workers.beat(worker(slots=4, busy=1))
    jobs = [await post(stand.client, items=urls(n + 1), paused=n == 1) for n in range(3)]
    page = await get(stand.client, "/api/jobs", limit=2)
    assert [job["id"] for job in page["jobs"]] == [jobs[2]["id"], jobs[1]["id"]]
    found = await get(stand.client, "/api/jobs", status="paused", scraper="builtin/page")
    assert [job["id"] for job in found["jobs"]] == [jobs[1]["id"]]
    stats = await get(stand.client, "/api/stats")
    assert (stats["jobs"]["by_status"]["running"], stats["jobs"]["items"]["pending"]) == (2, 6)
    assert stats["workers"] == {"count": 1, "slots": 4, "busy": 1}


async def test_rate_and_time_left_follow_from_two_looks(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await post(stand.client, items=urls(4))
    place = f"/api/jobs/{job['id']}"
    assert (job["items_per_second"], job["eta_seconds"]) == (None, None)
    now = 1e9
    monkeypatch.setattr(stand.gateway.jobs.rates, "_clock", lambda: now)
    await stand.store.batches.cut(Batch(id="batch_1", job_id=job["id"], left=2, queued_at=now), now)
    taken = await stand.store.batches.take("batch_1", "w1", now, now + 60)
    assert taken is not None
    assert (await get(stand.client, place))["items_per_second"] == 0
    outcomes = [outcome_of(item, ExitReason.SUCCEEDED) for item in taken[2]]
    await stand.store.batches.record("batch_1", "w1", 0, outcomes, now)
    now += 4
    done = await get(stand.client, place)
    assert (done["items_per_second"], done["eta_seconds"], done["progress"]) == (0.5, 4.0, 0.5)


async def test_a_policy_is_changed_for_what_is_handed_out_from_then_on(stand: Stand) -> None:
    job = await post(stand.client, items=urls(2), paused=True, policy={"rate": 5, "budget": {"megabytes": 1}})
    place = f"/api/jobs/{job['id']}"
    changed = await stand.client.patch(place, json={"policy": {"budget": {"megabytes": 20}}})
    assert (changed.status_code, changed.json()["status"]) == (200, "paused")
    assert changed.json()["policy"] == job["policy"] | {"budget": {"megabytes": 20.0}}
    assert await get(stand.client, place) == changed.json() | {"sink_deliveries": []}
    assert (await stand.client.patch(place, json={})).status_code == 422
    named = (await stand.client.patch(place, json={"name": "nightly", "priority": "high"})).json()
    assert named == changed.json() | {"name": "nightly", "priority": "high"}
    await post(stand.client, f"{place}/cancel")
    await refused(await stand.client.patch(place, json={"policy": {"rate": 1}}), 409, "conflict")
    assert (await get(stand.client, place))["policy"]["rate"] == 5
