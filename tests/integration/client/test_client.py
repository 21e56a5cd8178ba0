"""The Python client, sync and async, against a running server."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapeyard_client import (
    ApiError,
    AsyncClient,
    Client,
    Export,
    FileFailed,
    NoAnswer,
    Retries,
    RunFailed,
    WaitTimeout,
)
from tests.leaks import PATIENCE
from tests.programs import Embedded, Yard
from tests.services.ports import free_port
from tests.services.raw_answers import STREAM, answer, raw_answers

QUICK = Retries(first_seconds=0.01)


@pytest.fixture(scope="module")
def yard(nothing_left: None) -> Iterator[Yard]:
    with Embedded() as yard:
        yield yard
        assert not list(yard.errors())


@pytest.fixture
def client(yard: Yard) -> Iterator[Client]:
    with Client(yard.urls[0], timeout=PATIENCE) as client:
        yield client


def rows(count: int) -> list[dict[str, Any]]:
    return [{"item_id": f"k{n}", "n": n} for n in range(count)]


def test_a_page_and_a_scraper(yard: Yard, client: Client) -> None:
    page = client.scrape(f"{yard.shop.url}/product/1")
    assert (page.status, page.scraper) == ("succeeded", "builtin/page")
    assert "Aurora Lamp" in page.result["title"]
    assert page.finished_at is not None
    assert page.created_at is not None
    assert page.finished_at > page.created_at
    product = client.run("shop/product", {"url": f"{yard.shop.url}/product/1"})
    assert product.result["sku"] == "LIG-0001"
    assert next(client.runs.list(scraper="shop/product")).id == product.id
    assert client.runs.logs(product.id)[0]["text"] == "read a product"
    assert [event.name for event in client.runs.events(product.id)][-1] == "end"


def test_a_bad_end_is_an_exception_or_a_run(client: Client) -> None:
    with pytest.raises(RunFailed) as caught:
        client.run("lab/bad", {"way": "raise"}, policy={"retries": 0})
    assert (caught.value.status, caught.value.exit_reason, caught.value.code) == (502, "script_error", "script_error")
    assert "as told" in caught.value.detail
    assert caught.value.remedy
    run = client.run("lab/bad", {"way": "raise"}, policy={"retries": 0}, check=False)
    assert (run.status, run.exit_reason) == ("failed", "script_error")
    with pytest.raises(ApiError) as refused:
        client.run("no/such", {})
    assert (refused.value.status, refused.value.code) == (404, "scraper_not_found")
    with pytest.raises(ApiError) as wrong:
        client.run("lab/count", {"n": "many"})
    assert wrong.value.errors


def test_a_run_that_takes_long_goes_on(client: Client) -> None:
    queued = client.run("lab/nap", {"seconds": 60}, wait=False)
    assert not queued.has_ended
    with pytest.raises(WaitTimeout) as caught:
        client.runs.wait(queued.id, timeout=0.2)
    assert caught.value.id == queued.id
    client.runs.cancel(queued.id)
    assert client.runs.wait(queued.id, check=False).status == "cancelled"


def test_a_job_from_creation_to_files(client: Client, tmp_path: Path) -> None:
    job = client.jobs.create(scraper="builtin/echo", items=rows(450), name="many")
    assert job.wait(PATIENCE).status == "completed"
    assert (job.has_ended, job.counts["success"]) == (True, 450)
    assert [item.id for item in job.items()] == [f"k{n}" for n in range(450)]
    assert [record["n"] for record in job.records()] == list(range(450))
    chosen = list(job.items(key=["k3", "k7"]))
    assert [(item.id, item.has_ended, item.has_succeeded) for item in chosen] == [
        ("k3", True, True),
        ("k7", True, True),
    ]
    path = job.export(tmp_path / "many.jsonl", timeout=PATIENCE)
    assert [json.loads(line)["n"] for line in path.read_text().splitlines()] == list(range(450))
    assert [each.name for each in tmp_path.iterdir()] == ["many.jsonl"]
    assert [export.state for export in job.exports()] == ["done"]
    frame = job.to_frame()
    assert (len(frame), list(frame["n"][:3])) == (450, [0, 1, 2])
    assert job.id in [found.id for found in client.jobs.list(status="completed")]
    job.delete()
    with pytest.raises(ApiError, match="404 not_found"):
        job.refresh()


def test_records_of_a_list_and_large_results_are_read_whole(yard: Yard, client: Client) -> None:
    category = client.jobs.create(scraper="shop/category", items=[f"{yard.shop.url}/category/lighting"])
    large = client.jobs.create(scraper="lab/big", items=[{"size": 3_000_000}])
    assert [len(record["text"]) for record in large.wait(PATIENCE).records()] == [3_000_000]
    records = list(category.wait(PATIENCE).records())
    assert len(records) > 10
    assert all(record["title"] and record["price"] for record in records)


def test_a_file_is_uploaded_and_more_is_appended(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("item_id,n\n" + "".join(f"k{n},{n}\n" for n in range(300)))
    job = client.jobs.create(
        scraper="builtin/echo", file=path, paused=True, exports=[{"type": "full", "format": "csv"}]
    )
    assert (job.document["rows"]["taken"], job.status) == (300, "paused")
    assert job.append([{"item_id": "more", "n": 1}])["added"] == 1
    assert job.append(file=b'{"item_id": "last", "n": 2}\n', format="jsonl")["added"] == 1
    assert job.resume().wait(PATIENCE).counts["success"] == 302
    (export,) = job.exports()
    saved = client.download(export, tmp_path / "full.csv")
    assert hashlib.sha256(saved.read_bytes()).hexdigest() == export.sha256


def test_the_same_key_makes_one_job(client: Client) -> None:
    made = [client.jobs.create(items=rows(1), scraper="builtin/echo", idempotency_key="one").id for _ in range(2)]
    assert made[0] == made[1]


def test_events_of_a_job_come_until_its_end(client: Client) -> None:
    job = client.jobs.create(scraper="builtin/echo", items=rows(20))
    seen = list(job.events(lines=True, results=True))
    assert seen[-1].name == "end"
    assert seen[-1].data == {"id": job.id, "status": "completed"}
    assert {event.name for event in seen} >= {"progress", "status", "end"}


def test_jobs_are_steered(client: Client) -> None:
    job = client.jobs.create(scraper="lab/nap", items=[{"seconds": 60}], policy={"retries": 0})
    assert job.pause().status == "paused"
    assert job.cancel(kill=True).wait(PATIENCE).status == "cancelled"
    assert "cancelled" in repr(job)
    assert client.call("GET", "/api/health")["status"] == "ok"


async def test_the_async_client_does_the_same(yard: Yard, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(250)))
    async with AsyncClient(yard.urls[0], timeout=PATIENCE) as client:
        run = await client.run("shop/product", {"url": f"{yard.shop.url}/product/2"})
        assert run.result["sku"]
        job = await client.jobs.create(scraper="builtin/echo", file=path)
        names = [event.name async for event in job.events()]
        assert names[-1] == "end"
        assert (await job.wait(PATIENCE)).counts["success"] == 250
        assert [item.number async for item in job.items()] == list(range(250))
        assert len(await job.to_frame()) == 250
        saved = await job.export(tmp_path / "rows.csv", timeout=PATIENCE)
        assert len(saved.read_text().splitlines()) == 251
        with pytest.raises(RunFailed):
            await client.run("lab/bad", {"way": "raise"}, policy={"retries": 0})


def test_a_stream_that_breaks_is_taken_up_where_it_was() -> None:
    first = STREAM + b'id: 4\nevent: status\ndata: {"a": 1}\n\nid: 5\nevent: st'
    second = STREAM + b'id: 5\nevent: status\ndata: {"a": 2}\n\nevent: end\ndata: {}\n\n'
    busy = answer("503 Busy", b"{}", "Retry-After: 1")
    with raw_answers(first, busy, second) as server, Client(server.url, retries=QUICK) as client:
        seen = [(event.name, event.id) for event in client.events("/api/jobs/j/stream")]
    assert seen == [("status", 4), ("status", 5), ("end", None)]
    assert [asked.get("Last-Event-ID") for _, asked in server.asked] == [None, "4", "4"]


def export_of(content: bytes) -> Export:
    digest = hashlib.sha256(content).hexdigest()
    return Export(id="export_1", job_id="j", type="full", format="csv", state="done", sha256=digest)


def test_a_download_that_breaks_goes_on(tmp_path: Path) -> None:
    content = bytes(range(256)) * 100
    cut = answer("200 OK", content)[: -len(content) // 2]
    kept = len(content) + len(cut) - len(answer("200 OK", content))
    rest = answer("206 Partial", content[kept:], f"Content-Range: bytes {kept}-{len(content) - 1}/{len(content)}")
    with raw_answers(cut, rest) as server, Client(server.url, retries=QUICK) as client:
        saved = client.download(export_of(content), tmp_path / "site.csv")
    assert saved.read_bytes() == content
    assert server.asked[1][1]["Range"] == f"bytes={kept}-"


def test_a_damaged_download_leaves_no_file(tmp_path: Path) -> None:
    other = answer("200 OK", b"other")
    with (
        raw_answers(other) as server,
        Client(server.url, retries=QUICK) as client,
        pytest.raises(FileFailed, match="damaged"),
    ):
        client.download(export_of(b"content"), tmp_path / "site.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_call_is_repeated_with_its_key() -> None:
    done = answer("200 OK", b'{"id": "run_1", "status": "succeeded", "result": 1}')
    with raw_answers(b"", answer("503 Busy", b"{}"), done) as server, Client(server.url, retries=QUICK) as client:
        assert client.scrape("https://a.example").result == 1
    assert len({asked["Idempotency-Key"] for _, asked in server.asked}) == 1
    assert server.paths == ["POST /api/scrape"] * 3


def test_sites_are_crawled_and_mapped_by_their_own_calls() -> None:
    job = answer("202 Accepted", b'{"id": "job_1", "status": "creating", "counts": {}}')
    found = answer(
        "200 OK", b'{"id": "run_1", "status": "succeeded", "result": {"urls": [{"url": "https://a.example/b"}]}}'
    )
    with raw_answers(job, found) as server, Client(server.url, retries=QUICK) as client:
        assert client.crawl("https://a.example/", limit=10, formats=["markdown"]).id == "job_1"
        assert client.map("https://a.example/", search="b") == ["https://a.example/b"]
    assert server.paths == ["POST /api/crawl", "POST /api/map"]


def test_a_server_that_is_not_there_is_told() -> None:
    nowhere = Client(f"http://127.0.0.1:{free_port()}", retries=Retries(attempts=1))
    with nowhere as client, pytest.raises(NoAnswer, match="is the server running there"):
        client.call("GET", "/api/live")


def test_the_client_loads_nothing_of_the_server() -> None:
    script = (
        "import sys, scrapeyard_client; "
        "print([name for name in sys.modules if name.split('.')[0] in ('scrapeyard', 'scrapeyard_sdk', 'fastapi', "
        "'pydantic', 'sqlalchemy', 'pandas')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.strip() == "[]"
