"""The architecture document (D4): its variables, a job's life from created to archived, and results while they come."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.integration.documents.stand import Yard, served
from tests.leaks import PATIENCE, until
from tests.services.valkey import ValkeyServer


@pytest.fixture(scope="module")
def yard(valkey_server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    place = valkey_server.url.removeprefix("redis://").partition("/")[0]
    names = {"REDIS_URL": place, "KAFKA_BROKERS": "kafka:9092"}
    with served(tmp_path_factory.mktemp("enterprise"), **names) as opened:
        yield opened


@pytest.fixture(scope="module")
def job(yard: Yard) -> dict[str, Any]:
    """A job of two pages and one address where nobody answers, and the events of its life."""
    items = [f"{yard.shop}/product/1", f"{yard.shop}/product/2", "http://127.0.0.1:1/"]
    policy = {"retries": 1, "backoff": {"kind": "linear", "first_seconds": 0.1, "cap_seconds": 0.1}}
    call = {"items": items, "priority": "high", "policy": policy, "paused": True}
    made = yard.json("POST", "/api/jobs", 201, json=call)
    place = f"/api/jobs/{made['id']}"
    with connect(f"{yard.url.replace('http', 'ws')}{place}/ws?results=true&lines=true") as socket:
        yard.json("POST", f"{place}/resume")
        events: list[dict[str, Any]] = []
        while not events or events[-1]["event"] != "end":
            events.append(json.loads(socket.recv(PATIENCE)))
    return {"id": made["id"], "place": place, "events": events}


def test_redis_is_found_without_a_scheme(yard: Yard) -> None:
    assert yard.json("GET", "/api/health")["dependencies"]["queue"]["state"] == "ok"


def test_results_come_over_the_websocket(job: dict[str, Any]) -> None:
    lines = [event["data"] for event in job["events"] if event["event"] == "item"]
    assert sorted(line["exit_reason"] for line in lines) == ["fetch_connect", "succeeded", "succeeded"]
    assert all(line["result"]["title"] for line in lines if line["exit_reason"] == "succeeded")


def test_a_job_is_processed_retried_and_completed(yard: Yard, job: dict[str, Any]) -> None:
    told = [event["data"]["status"] for event in job["events"] if event["event"] in ("status", "end")]
    assert told[-1] == "completed"
    (failed,) = yard.json("GET", f"{job['place']}/items", params={"status": "error"})["items"]
    assert failed["attempt"] == 2


def test_failed_items_are_dead_letters(yard: Yard, job: dict[str, Any]) -> None:
    (letter,) = yard.json("GET", "/api/dead-letters", params={"job_id": job["id"]})["items"]
    assert letter["exit_reason"] == "fetch_connect"


def test_a_job_is_archived_and_restored(yard: Yard, job: dict[str, Any]) -> None:
    def is_where(state: str) -> bool:
        return bool(yard.json("GET", job["place"])["archive"] == state)

    yard.json("POST", f"{job['place']}/archive")
    until(lambda: is_where("archived"), "it is archived")
    yard.json("POST", f"{job['place']}/restore")
    until(lambda: is_where(""), "it is restored")
    assert len(yard.json("GET", f"{job['place']}/items")["items"]) == 3


def test_pages_are_cached_and_what_happens_is_measured(yard: Yard) -> None:
    call = {"url": f"{yard.shop}/product/4", "policy": {"max_age_seconds": 600}}
    first, second = (yard.json("POST", "/api/scrape", json=call) for _ in range(2))
    assert (first["usage"]["requests"], second["usage"]["requests"]) == (1, 0)
    assert "scrapeyard_" in yard.client.get("/metrics").text


def test_work_is_scheduled_as_cron_does(yard: Yard) -> None:
    call = {"cron": "0 3 * * *", "scrape": {"url": f"{yard.shop}/product/1"}}
    made = yard.json("POST", "/api/schedule", 201, json=call)
    assert made["next_runs"]
    assert yard.client.delete(f"/api/schedule/{made['id']}").status_code == 204
