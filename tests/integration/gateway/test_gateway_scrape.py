"""`POST /api/scrape` at the door: waiting, handles, refusals."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.gateway.http import alternatives
from scrapeyard.gateway.runs.waiting import Call, Wake
from scrapeyard.model import Cancel, ExitReason, Priority, RunError, RunStatus
from scrapeyard.queues import messages
from scrapeyard.settings import GatewaySettings, Settings
from tests.integration.gateway_stand import Stand, open_stand, outcome_of, raw, worker
from tests.leaks import PATIENCE

URL = "https://shop.example/p/1"


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


def post(stand: Stand, body: dict[str, Any], **headers: str) -> asyncio.Task[httpx.Response]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.create_task(stand.client.post("/api/scrape", json=body, headers=named))


async def test_a_url_alone_runs_the_page_scraper_and_answers_in_the_same_response(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    delivery = await stand.take()
    assert (delivery.scraper, bytes(delivery.input)) == ("builtin/page", b'{"url":"https://shop.example/p/1"}')
    assert (delivery.priority, delivery.max_attempts, delivery.reply_to) == (Priority.HIGH, 2, "gw1")
    await stand.finish(delivery)
    response = await call
    assert response.status_code == 200
    document = response.json()
    assert document["result"] == {"title": "Tea", "price": 1.5}
    assert (document["id"], document["status"], document["exit_reason"]) == (delivery.run_id, "succeeded", "succeeded")
    assert (document["version"], document["digest"]) == ("1.4.2", "d")
    assert document["created_at"].endswith("Z")
    assert document["links"]["self"] == f"/api/scrape/{delivery.run_id}"


async def test_a_result_passes_through_byte_for_byte(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    await stand.finish(await stand.take(), result=raw(None).__class__(b'{"n": 1.0e2,  "b":[ ]}'))
    assert b'"result":{"n": 1.0e2,  "b":[ ]}' in (await call).content


async def test_a_url_beside_a_scraper_becomes_its_input(stand: Stand) -> None:
    call = post(stand, {"scraper": "shop/product", "url": URL, "input": {"currency": "EUR"}, "policy": {"retries": 3}})
    delivery = await stand.take()
    assert bytes(delivery.input) == b'{"currency":"EUR","url":"https://shop.example/p/1"}'
    assert (delivery.scraper, delivery.max_attempts) == ("shop/product@1.4.2", 4)
    await stand.finish(delivery)
    assert (await call).json()["scraper"] == "shop/product"


async def test_a_run_that_ended_badly_is_a_502_problem_with_the_run_in_it(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    delivery = await stand.take()
    await stand.finish(delivery, ExitReason.SCRIPT_ERROR, error=RunError(message="KeyError: 'price'", type="KeyError"))
    response = await call
    assert (response.status_code, response.headers["content-type"]) == (502, "application/problem+json")
    problem = response.json()
    assert problem["code"] == problem["exit_reason"] == "script_error"
    assert (problem["scraper"], problem["version"], problem["digest"]) == ("builtin/page", "1.4.2", "d")
    assert (problem["id"], problem["retryable"]) == (delivery.run_id, False)
    assert problem["detail"] == problem["error"]["message"] == "KeyError: 'price'"
    assert problem["remedy"]
    assert problem["links"]["self"].endswith(delivery.run_id)


@pytest.mark.parametrize("reason", [ExitReason.TIMEOUT, ExitReason.CPU_LIMIT])
async def test_a_time_limit_is_a_504(stand: Stand, reason: ExitReason) -> None:
    call = post(stand, {"url": URL})
    await stand.finish(await stand.take(), reason)
    response = await call
    assert (response.status_code, response.json()["code"]) == (504, reason.value)


async def test_an_attempt_that_will_be_followed_by_another_is_no_answer_yet(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    delivery = await stand.take()
    await stand.finish(delivery, ExitReason.RETRY, retry_after=0.0)
    again = await stand.store.runs.get(delivery.run_id)
    assert again is not None
    assert (again.status, again.attempt) == (RunStatus.QUEUED, 2)
    assert not call.done()
    second = delivery.__class__(**{**{n: getattr(delivery, n) for n in delivery.__struct_fields__}, "attempt": 2})
    await stand.finish(second)
    assert (await call).json()["attempt"] == 2


async def test_a_wait_that_is_over_answers_202_with_a_durable_handle_and_the_run_goes_on(stand: Stand) -> None:
    response = await post(stand, {"url": URL, "wait": 0.05})
    assert response.status_code == 202
    run_id = response.json()["id"]
    assert response.headers["location"] == f"/api/scrape/{run_id}" == response.json()["links"]["self"]
    kept = await stand.store.runs.get(run_id)
    assert kept is not None
    assert kept.status is RunStatus.QUEUED
    await stand.finish(await stand.take())
    assert (await stand.client.get(f"/api/scrape/{run_id}")).json()["status"] == "succeeded"


async def test_on_timeout_cancel_cancels_and_answers_504(stand: Stand) -> None:
    async with stand.queue.listen(messages.SIGNALS) as signals:
        response = await post(stand, {"url": URL, "wait": 0.05, "on_timeout": "cancel"})
        assert (response.status_code, response.json()["code"]) == (504, "wait_timeout")
        run_id = response.json()["id"]
        assert messages.decode_signal(await anext(signals)) == Cancel(run_id=run_id)
    kept = await stand.store.runs.get(run_id)
    assert kept is not None
    assert kept.status is RunStatus.CANCELLED


async def test_wait_zero_is_written_before_it_is_published(stand: Stand) -> None:
    response = await post(stand, {"url": URL, "wait": 0})
    assert response.status_code == 202
    delivery = await stand.take(0.1)
    assert (delivery.priority, delivery.reply_to) == (Priority.NORMAL, "")
    assert await stand.store.runs.get(delivery.run_id) is not None


@pytest.mark.parametrize(
    ("prefer", "applied"),
    [("respond-async", "respond-async"), ("wait=0", "wait=0"), ("respond-async, wait=0", "wait=0")],
)
async def test_prefer_is_honoured_and_confirmed(stand: Stand, prefer: str, applied: str) -> None:
    response = await post(stand, {"url": URL}, Prefer=prefer)
    assert (response.status_code, response.headers["preference-applied"]) == (202, applied)


async def test_the_body_wins_over_prefer(stand: Stand) -> None:
    response = await post(stand, {"url": URL, "wait": 0}, Prefer="wait=30")
    assert response.status_code == 202
    assert "preference-applied" not in response.headers


async def test_several_urls_make_a_run_each(stand: Stand) -> None:
    call = post(stand, {"urls": [URL, URL + "2"], "scraper": "shop/product"})
    first, second = await stand.take(), await stand.take()
    await stand.finish(first)
    await stand.finish(second, ExitReason.FAILED)
    response = await call
    assert response.status_code == 200
    assert [run["status"] for run in response.json()["runs"]] == ["succeeded", "failed"]
    assert response.json()["runs"][1]["input"]["url"] == URL + "2"


async def test_several_urls_not_all_ended_answer_202(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def wait(*_: Any) -> Wake:
        await over.wait()
        return Wake.TIMEOUT

    monkeypatch.setattr(Call, "wait", wait)  # the time is over when the first is known to have ended
    call = post(stand, {"urls": [URL, URL + "2"], "wait": 1})
    delivery = await stand.take()
    await stand.finish(delivery)
    async with asyncio.timeout(PATIENCE):
        while not stand.gateway.waiters.ended_lately(delivery.run_id):
            await asyncio.sleep(0.01)
    over.set()
    response = await call
    assert response.status_code == 202
    assert [run["status"] for run in response.json()["runs"]] == ["succeeded", "queued"]


async def test_a_lost_reply_is_found_in_the_store(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    delivery = await stand.take()
    quiet = delivery.__class__(**{**{n: getattr(delivery, n) for n in delivery.__struct_fields__}, "reply_to": ""})
    await stand.finish(quiet)
    assert (await call).status_code == 200


async def test_the_traceparent_travels(stand: Stand) -> None:
    given = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    response = await post(stand, {"url": URL, "wait": 0}, traceparent=given)
    assert response.headers["traceparent"] == given
    assert (await stand.take()).traceparent == given
    made = await post(stand, {"url": URL, "wait": 0}, traceparent="nonsense")
    assert made.headers["traceparent"] == (await stand.take()).traceparent != "nonsense"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "/"),
        ({"url": "ftp://x"}, "/url"),
        ({"url": URL, "urls": [URL]}, "/"),
        ({"url": URL, "input": {"url": "https://other.example"}}, "/"),
        ({"url": URL, "colour": "red"}, "/colour"),
        ({"scraper": "../etc"}, "/scraper"),
        ({"url": URL, "wait": 301}, "/wait"),
        ({"url": URL, "policy": {"retries": 21}}, "/policy/retries"),
        ({"urls": [URL] * 1001}, "/urls"),
        ([], "/"),
        ({"url": URL, "lane": "a/b"}, "/lane"),
    ],
)
async def test_what_is_not_valid_is_refused_with_its_place(stand: Stand, body: Any, place: str) -> None:
    response = await stand.client.post("/api/scrape", json=body)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    assert response.json()["errors"][0]["path"] == place
    assert await stand.queue.depth() == {}


async def test_an_input_that_does_not_fit_the_schema_is_refused_with_each_place(stand: Stand) -> None:
    response = await post(stand, {"scraper": "shop/product", "input": {"currency": 5}})
    assert (response.status_code, response.json()["code"]) == (422, "bad_input")
    assert {error["path"] for error in response.json()["errors"]} == {"/input", "/input/currency"}


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"url": NaN}', b'"\\ud800"', b"\xff", b"[" * 100_000, b'{"url":"https://x.example"} x']
)
async def test_what_is_not_json_is_a_400(stand: Stand, content: bytes) -> None:
    response = await stand.client.post("/api/scrape", content=content, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "bad_json")


async def test_half_of_a_surrogate_pair_is_named(stand: Stand) -> None:
    headers = {"Content-Type": "application/json"}
    response = await stand.client.post("/api/scrape", content=b'{"url": "\\ud83d"}', headers=headers)
    assert "surrogate" in response.json()["detail"]


async def test_a_form_post_is_refused_so_that_no_web_page_can_send_one(stand: Stand) -> None:
    response = await stand.client.post("/api/scrape", content=b'{"url":"https://x.example"}')
    assert (response.status_code, response.json()["code"]) == (415, "not_json")


async def test_an_unknown_scraper_is_a_404(stand: Stand) -> None:
    response = await post(stand, {"scraper": "no/such"})
    assert (response.status_code, response.json()["code"]) == (404, "scraper_not_found")


async def test_a_lane_that_no_worker_takes_is_refused(stand: Stand) -> None:
    response = await post(stand, {"url": URL, "lane": "bulk", "wait": 0})
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")


async def test_a_lane_that_a_worker_takes_is_used(stand: Stand) -> None:
    await stand.store.workers.beat(worker())
    response = await post(stand, {"url": URL, "lane": "bulk", "wait": 0})
    assert response.status_code == 202
    assert (await stand.take()).lane == "bulk"


async def test_a_full_backlog_is_a_503_with_retry_after(tmp_path: Path) -> None:
    settings = Settings(gateway=GatewaySettings(max_backlog=2))
    async with open_stand(tmp_path, settings) as stand:
        for _ in range(2):
            assert (await post(stand, {"url": URL, "wait": 0})).status_code == 202
        refused = await post(stand, {"url": URL, "wait": 0})
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
        assert (await stand.store.runs.counts())[RunStatus.QUEUED] == 2


async def test_a_backlog_that_drained_is_noticed(tmp_path: Path) -> None:
    settings = Settings(gateway=GatewaySettings(max_backlog=1))
    async with open_stand(tmp_path, settings) as stand:
        assert (await post(stand, {"url": URL, "wait": 0})).status_code == 202
        await stand.take()
        assert (await post(stand, {"url": URL, "wait": 0})).status_code == 202


async def test_too_many_waiting_calls_are_a_429(tmp_path: Path) -> None:
    settings = Settings(gateway=GatewaySettings(max_waiting=1, wait_seconds=PATIENCE))
    async with open_stand(tmp_path, settings) as stand:
        first = post(stand, {"url": URL})
        delivery = await stand.take()
        refused = await post(stand, {"url": URL})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_waiting")
        assert refused.headers["retry-after"]
        await stand.finish(delivery)
        assert (await first).status_code == 200


async def test_a_large_result_streams_from_the_blobs(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    delivery = await stand.take()
    whole = b'["' + b"x" * 3_000_000 + b'"]'
    await stand.blobs.put("runs/r/1/result.json", whole, "application/json")
    await stand.finish(delivery, result=None, result_key="runs/r/1/result.json", result_bytes=len(whole))
    response = await call
    assert response.json()["result"] == ["x" * 3_000_000]
    assert response.json()["id"] == delivery.run_id
    again = (await stand.client.get(f"/api/scrape/{delivery.run_id}")).json()
    assert {name: again[name] for name in response.json()} == response.json()
    assert again.keys() - response.json().keys() == alternatives.RUN.keys()


async def test_a_result_that_left_the_blobs_is_said(stand: Stand) -> None:
    call = post(stand, {"urls": [URL]})
    await stand.finish(await stand.take(), result=None, result_key="runs/gone/1/result.json")
    run = (await call).json()["runs"][0]
    assert run["result"] is None
    assert "no longer" in run["error"]["message"]


async def test_stopping_answers_those_who_wait_with_durable_handles(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    await stand.take()
    stand.gateway.close()
    response = await call
    assert response.status_code == 202
    assert await stand.store.runs.get(response.json()["id"]) is not None
    assert (await stand.client.get("/api/ready")).status_code == 503


async def test_a_reply_that_is_nonsense_harms_nobody(stand: Stand) -> None:
    call = post(stand, {"url": URL})
    delivery = await stand.take()
    await stand.queue.send(messages.replies("gw1"), b"\xff{")
    await stand.reply(delivery, outcome_of(delivery))
    assert (await call).status_code == 200
