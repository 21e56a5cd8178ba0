"""Idempotency-Key: the same key and body run once and answer alike."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.model import ExitReason
from tests.integration.gateway_stand import Stand, open_stand

BODY = {"url": "https://shop.example/p/1"}


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with open_stand(tmp_path) as opened:
        yield opened


def post(stand: Stand, body: dict[str, Any] = BODY, key: str = "k1") -> asyncio.Task[httpx.Response]:
    return asyncio.create_task(stand.client.post("/api/scrape", json=body, headers={"Idempotency-Key": key}))


async def test_the_first_answer_is_replayed(stand: Stand) -> None:
    first = post(stand)
    await stand.finish(await stand.take())
    answer = await first
    assert "idempotency-replayed" not in answer.headers
    again = await post(stand, {"url": BODY["url"]})
    assert again.headers["idempotency-replayed"] == "true"
    assert (again.status_code, again.json()) == (200, answer.json())
    assert await stand.queue.depth() == {}


async def test_a_bad_end_is_replayed_too(stand: Stand) -> None:
    first = post(stand)
    await stand.finish(await stand.take(), ExitReason.FAILED)
    assert (await first).status_code == 502
    again = await post(stand)
    assert (again.status_code, again.json()) == (502, (await first).json())


async def test_concurrent_duplicates_run_once_and_all_are_answered(stand: Stand) -> None:
    calls = [post(stand) for _ in range(5)]
    await stand.finish(await stand.take())
    answers = await asyncio.gather(*calls)
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sorted("idempotency-replayed" in answer.headers for answer in answers) == [False] + [True] * 4
    assert await stand.queue.depth() == {}


async def test_another_body_under_the_same_key_is_a_conflict(stand: Stand) -> None:
    assert (await post(stand, {**BODY, "wait": 0})).status_code == 202
    response = await post(stand, {**BODY, "wait": 1})
    assert (response.status_code, response.json()["code"]) == (422, "idempotency_conflict")


async def test_the_order_of_keys_in_the_body_does_not_matter(stand: Stand) -> None:
    first = await post(stand, {"url": BODY["url"], "wait": 0})
    again = await post(stand, {"wait": 0, "url": BODY["url"]})
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["location"] == first.headers["location"]


async def test_several_runs_replay_together(stand: Stand) -> None:
    body = {"urls": ["https://a.example", "https://b.example"], "wait": 0}
    first, again = await post(stand, body), await post(stand, body)
    assert [run["id"] for run in first.json()["runs"]] == [run["id"] for run in again.json()["runs"]]


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9"])
async def test_a_key_that_cannot_be_kept_is_refused(stand: Stand, key: str) -> None:
    headers = [(b"idempotency-key", key.encode("latin-1")), (b"content-type", b"application/json")]
    response = await stand.client.post("/api/scrape", content=b'{"url":"https://a.example"}', headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")
