"""Looking runs up, listing, cancelling, logs, explain, artifacts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scrapeyard.errors import StoreUnavailable
from scrapeyard.model import (
    Artifact,
    Cancel,
    Delivery,
    ExitReason,
    FetchTrace,
    LogLine,
    RunError,
    RunStatus,
    Timing,
    Usage,
    new_id,
)
from scrapeyard.queues import messages
from tests.integration.gateway_stand import Stand, open_stand, outcome_of, run_of
from tests.leaks import PATIENCE, until

URL = "https://shop.example/p/1"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


async def submit(stand: Stand, **more: object) -> Delivery:
    response = await stand.client.post("/api/scrape", json={"url": URL, "wait": 0, **more})
    assert response.status_code == 202
    return await stand.take()


async def test_a_lookup_is_200_however_the_run_ended(stand: Stand) -> None:
    delivery = await submit(stand)
    queued = (await stand.client.get(f"/api/scrape/{delivery.run_id}")).json()
    assert (queued["status"], queued["result"], queued["exit_reason"]) == ("queued", None, None)
    await stand.finish(delivery, ExitReason.BLOCKED, error=RunError(message="no", site_status=403))
    response = await stand.client.get(f"/api/scrape/{delivery.run_id}")
    assert response.status_code == 200
    assert response.json()["exit_reason"] == "blocked"
    assert response.json()["error"]["site_status"] == 403


async def test_a_lookup_right_after_the_answer_finds_the_end_though_its_row_is_behind(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapeyard.gateway.runs.answers.BEHIND_SECONDS", PATIENCE)
    call = asyncio.create_task(stand.client.post("/api/scrape", json={"url": URL}))
    delivery = await stand.take()
    outcome = outcome_of(delivery)
    await stand.reply(delivery, outcome)
    assert (await call).status_code == 200
    lookup = asyncio.create_task(stand.client.get(f"/api/scrape/{delivery.run_id}"))
    await stand.finish(delivery)
    assert (await lookup).json()["status"] == "succeeded"


async def test_a_long_poll_answers_when_the_run_ends(stand: Stand) -> None:
    delivery = await submit(stand)
    poll = asyncio.create_task(stand.client.get(f"/api/scrape/{delivery.run_id}", params={"wait": PATIENCE}))
    await stand.finish(delivery)
    assert (await poll).json()["status"] == "succeeded"


async def test_a_long_poll_that_runs_out_tells_the_run_as_it_stands(stand: Stand) -> None:
    delivery = await submit(stand)
    response = await stand.client.get(f"/api/scrape/{delivery.run_id}", params={"wait": 0.05})
    assert (response.status_code, response.json()["status"]) == (200, "queued")


@pytest.mark.parametrize("path", ["", "/logs", "/events", "/explain", "/artifacts", "/artifacts/page.html"])
async def test_an_unknown_run_is_a_404_problem(stand: Stand, path: str) -> None:
    response = await stand.client.get(f"/api/scrape/{new_id('run')}{path}")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("run_id", ["run_1", "%00", "run_" + "z" * 32, "x" * 5000, "run_" + "a" * 32 + "%0a"])
async def test_a_text_that_is_no_run_id_is_a_404_problem(stand: Stand, run_id: str) -> None:
    response = await stand.client.get(f"/api/scrape/{run_id}")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_the_listing_pages_newest_first_and_filters(stand: Stand) -> None:
    first, second, third = [await submit(stand) for _ in range(3)]
    await stand.finish(first, ExitReason.FAILED)
    page = (await stand.client.get("/api/scrape", params={"limit": 2})).json()
    assert [run["id"] for run in page["runs"]] == sorted((second.run_id, third.run_id, first.run_id))[:0:-1]
    assert all("result" not in run for run in page["runs"])
    rest = (await stand.client.get("/api/scrape", params={"limit": 2, "cursor": page["next_cursor"]})).json()
    assert len(rest["runs"]) == 1
    assert rest["next_cursor"] is None
    failed = (await stand.client.get("/api/scrape", params={"status": "failed", "exit_reason": "failed"})).json()
    assert [run["id"] for run in failed["runs"]] == [first.run_id]
    none = await stand.client.get("/api/scrape", params={"created_before": "2001-01-01T00:00:00Z"})
    assert none.json() == {"runs": [], "next_cursor": None}
    assert len((await stand.client.get("/api/scrape", params={"scraper": "builtin/page"})).json()["runs"]) == 3


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=" + "9" * 400,
        "limit=x",
        "cursor=%00",
        "cursor=" + "a" * 300,
        "cursor=nonsense",
        "status=odd",
        "scraper=%00/x",
        "created_after=yesterday",
        "created_after=9e999",
        "created_after=-23852",
    ],
)
async def test_odd_queries_are_4xx(stand: Stand, query: str) -> None:
    response = await stand.client.get(f"/api/scrape?{query}")
    assert response.status_code in (400, 422)
    assert response.headers["content-type"] == "application/problem+json"


async def test_deleting_a_queued_run_cancels_it_and_may_be_repeated(stand: Stand) -> None:
    delivery = await submit(stand)
    async with stand.queue.listen(messages.SIGNALS) as signals:
        response = await stand.client.delete(f"/api/scrape/{delivery.run_id}")
        assert messages.decode_signal(await anext(signals)) == Cancel(run_id=delivery.run_id)
    assert (response.status_code, response.json()["status"]) == (200, "cancelled")
    again = await stand.client.delete(f"/api/scrape/{delivery.run_id}")
    assert again.json() == response.json()


async def test_deleting_a_run_that_ended_changes_nothing(stand: Stand) -> None:
    delivery = await submit(stand)
    await stand.finish(delivery)
    response = await stand.client.delete(f"/api/scrape/{delivery.run_id}")
    assert (response.status_code, response.json()["status"]) == (200, "succeeded")
    assert (await stand.client.delete(f"/api/scrape/{new_id('run')}")).status_code == 404


async def test_cancelling_answers_the_caller_who_waits(stand: Stand) -> None:
    call = asyncio.create_task(stand.client.post("/api/scrape", json={"url": URL}))
    delivery = await stand.take()
    assert (await stand.client.delete(f"/api/scrape/{delivery.run_id}")).status_code == 200
    response = await call
    assert (response.status_code, response.json()["exit_reason"]) == (502, "cancelled")


async def test_deleting_a_running_run_marks_it_for_its_worker(stand: Stand) -> None:
    delivery = await submit(stand)
    await stand.store.runs.begin([run_of(delivery)])
    response = await stand.client.delete(f"/api/scrape/{delivery.run_id}")
    assert response.json()["status"] == "running"
    assert await stand.store.runs.renew("worker_1", [delivery.run_id], 9e9) == [delivery.run_id]


async def test_logs_as_json_and_as_text(stand: Stand) -> None:
    delivery = await submit(stand)
    lines = (LogLine(at_ms=1.5, stream="stdout", text="hello <b>"), LogLine(at_ms=2, stream="log", text="안녕"))
    await stand.finish(delivery, logs=lines, logs_cut=True)
    document = (await stand.client.get(f"/api/scrape/{delivery.run_id}/logs")).json()
    assert [line["text"] for line in document["lines"]] == ["hello <b>", "안녕"]
    assert document["cut"] is True
    text = await stand.client.get(f"/api/scrape/{delivery.run_id}/logs", headers={"Accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain")
    assert text.headers["x-content-type-options"] == "nosniff"
    assert "hello <b>" in text.text
    assert text.text.endswith("(cut)\n")


async def test_explain_tells_where_the_time_went_and_what_to_do(stand: Stand) -> None:
    delivery = await submit(stand, scraper="shop/product", policy={"timeout_seconds": 5})
    await stand.finish(
        delivery,
        ExitReason.TIMEOUT,
        usage=Usage(wall_ms=4900, fetches=1),
        timing=Timing(queue_ms=900, script_ms=4900, fetch_ms=4000),
        fetches=(FetchTrace(url=URL, status=503, bytes=10, ms=4000),),
    )
    document = (await stand.client.get(f"/api/scrape/{delivery.run_id}/explain")).json()
    phases = {phase["name"]: phase["ms"] for phase in document["phases"]}
    assert (phases["queue"], phases["fetch"], phases["script"]) == (900, 4000, 900)
    wall = next(limit for limit in document["limits"] if limit["name"] == "wall_seconds")
    assert (wall["used"], wall["allowed"], wall["percent"]) == (4.9, 5, 98)
    assert document["fetches"][0]["status"] == 503
    assert (document["worker"], document["retryable"]) == ("worker_1", True)
    told = " ".join(document["summary"])
    assert "fetching pages" in told
    assert "add workers" in told
    assert "98 % of its wall_seconds" in told
    assert "limits.wall_seconds" in told


async def test_explain_tells_what_came_through_proxies_and_what_is_left_of_the_budget(stand: Stand) -> None:
    delivery = await submit(stand, scraper="shop/product", policy={"budget": {"requests": 4, "megabytes": 5}})
    through = {"direct": 2**20, "residential": 3 * 2**20}
    await stand.finish(
        delivery,
        usage=Usage(fetches=1, requests=3, bytes_received=4 * 2**20, bytes_by_class=through),
        fetches=(FetchTrace(url=URL, status=200, bytes=10, ms=40),),
    )
    shown = (await stand.client.get(f"/api/scrape/{delivery.run_id}")).json()["usage"]
    assert (shown["requests"], shown["bytes_by_class"]) == (3, through)
    document = (await stand.client.get(f"/api/scrape/{delivery.run_id}/explain")).json()
    assert (document["requests"], document["bytes_by_class"]) == (3, through)
    words = "It took 3 requests and received 1.00 MB directly, 3.00 MB through residential proxies."
    assert words in document["summary"]
    limits = {limit["name"]: limit["percent"] for limit in document["limits"]}
    assert (limits["budget.requests"], limits["budget.megabytes"]) == (75, 80)


async def test_explain_of_a_run_that_waits(stand: Stand) -> None:
    delivery = await submit(stand)
    document = (await stand.client.get(f"/api/scrape/{delivery.run_id}/explain")).json()
    assert document["status"] == RunStatus.QUEUED
    assert "waited" in document["summary"][0]


async def test_artifacts_download_as_attachments_that_no_browser_runs(stand: Stand) -> None:
    delivery = await submit(stand)
    key = f"runs/{delivery.run_id}/1/artifacts/page.html"
    await stand.blobs.put(key, b"<script>alert(1)</script>", "text/html")
    kept = Artifact(name="page.html", content_type="text/html; charset=utf-8", size=25, key=key)
    odd = Artifact(name="odd.bin", content_type="x\r\nSet-Cookie: a=b", size=25, key=key)
    await stand.finish(delivery, artifacts=(kept, odd))
    listed = (await stand.client.get(f"/api/scrape/{delivery.run_id}/artifacts")).json()["artifacts"]
    assert [artifact["name"] for artifact in listed] == ["page.html", "odd.bin"]
    assert "key" not in listed[0]
    response = await stand.client.get(listed[0]["href"])
    assert response.content == b"<script>alert(1)</script>"
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-disposition"].startswith("attachment;")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in response.headers["content-security-policy"]
    assert (await stand.client.get(listed[1]["href"])).headers["content-type"] == "application/octet-stream"
    missing = await stand.client.get(f"/api/scrape/{delivery.run_id}/artifacts/other.html")
    assert missing.status_code == 404
    traversal = await stand.client.get(f"/api/scrape/{delivery.run_id}/artifacts/..%2f..%2fruns.sqlite")
    assert traversal.status_code in (404, 422)


async def test_a_call_that_cannot_be_made_durable_is_cancelled(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited in vain and the database is away: the caller is refused, so its run must not stay queued. The answer
    names the run, since nobody can know whether the cancel comes in time."""
    flush = stand.recorder.flush

    async def away() -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(stand.recorder, "flush", away)
    response = await stand.client.post("/api/scrape", json={"url": URL, "wait": 0.05})
    assert (response.status_code, response.json()["code"]) == (503, "maybe_accepted")
    monkeypatch.setattr(stand.recorder, "flush", flush)
    await flush()
    delivery = await stand.take()
    assert response.json()["id"] == delivery.run_id
    run = (await stand.client.get(f"/api/scrape/{delivery.run_id}")).json()
    assert (run["status"], run["exit_reason"]) == ("cancelled", "cancelled")


@pytest.mark.parametrize("call", [{"url": URL}, {"urls": [URL, URL]}], ids=["one", "many"])
async def test_runs_that_end_while_the_database_is_away_are_answered(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, call: dict[str, object]
) -> None:
    """Nothing is left to be made durable, and the caller has what it came for."""
    many = len(call.get("urls", [URL]))  # type: ignore[arg-type]  # a list, where there is one

    async def away() -> None:
        ids = [(await stand.finish(await stand.take())).run_id for _ in range(many)]
        heard = stand.gateway.waiters.ended_lately
        await asyncio.to_thread(until, lambda: all(map(heard, ids)), "every reply")
        raise StoreUnavailable("away")

    monkeypatch.setattr(stand.recorder, "flush", away)
    response = await stand.client.post("/api/scrape", json={**call, "wait": 0.05})
    assert response.status_code == 200
