"""Lifecycle events of runs and jobs on a Kafka topic, from a whole server."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx

from scrapeyard.cli.doctor.topics import check_topics
from scrapeyard.settings import Settings
from tests.integration.wiring.test_broker_road import call, settings_of, started
from tests.leaks import PATIENCE
from tests.services.kafka import KafkaServer

TOPIC = "yard.events"
FAILS = """
from scrapeyard_sdk import Retry

def run(ctx, n):
    raise Retry("not yet", after=0)
"""


def with_events(folder: Path, server: KafkaServer, queue: dict[str, Any] | None = None) -> Settings:
    settings = settings_of(folder, {})
    place = folder / "scrapers" / "shop" / "fails"
    place.mkdir(parents=True)
    (place / "scraper.py").write_text(FAILS)
    (place / "scraper.toml").write_text('id = "shop/fails"\nversion = "1.0.0"\n')
    given = settings.model_dump()
    given["events"] = {"url": server.url, "topic": TOPIC}
    return Settings.model_validate(given | {"queue": queue or {}})


async def told(server: KafkaServer, *final: str) -> dict[str, list[dict[str, Any]]]:
    """The events of each run and job, in order, as soon as all these are told."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found: dict[str, list[dict[str, Any]]] = defaultdict(list)
            for record in await asyncio.to_thread(server.read, TOPIC):
                event = json.loads(record.value() or b"")
                assert record.key() == event["subject"].encode()
                found[event["subject"]].append(event)
            names = [event["event"] for events in found.values() for event in events]
            if all(names.count(name) >= final.count(name) for name in final):
                return found
            await asyncio.sleep(0.05)


def names_of(events: list[dict[str, Any]]) -> list[str]:
    """Each event once, as its id lets a reader tell."""
    return [event["event"] for event in {event["id"]: event for event in events}.values()]


async def test_runs_and_jobs_tell_their_steps_in_order(tmp_path: Path, own_kafka: KafkaServer) -> None:
    settings = with_events(tmp_path, own_kafka)
    async with started(settings, "gateway", "worker", "dispatcher") as platform:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            good = (await call(client, 21)).json()["id"]
            asked = {"scraper": "shop/fails", "input": {"n": 1}, "wait": 60}
            bad = (await client.post("/api/scrape", json=asked)).json()["id"]
            made = {"scraper": "shop/product", "items": [{"n": number} for number in range(3)]}
            job = (await client.post("/api/jobs", json=made)).json()["id"]
            found = await told(own_kafka, "run.succeeded", "run.failed", "job.completed")

            assert names_of(found[good]) == ["run.created", "run.started", "run.succeeded"]
            assert names_of(found[bad])[0] == "run.created"
            assert names_of(found[bad])[-3:] == ["run.retried", "run.started", "run.failed"]
            assert names_of(found[job]) == ["job.created", "job.started", "job.completed"]
            last = found[good][-1]
            assert (last["schema"], last["run"]["status"]) == ("scrapeyard.event/1", "succeeded")
            assert "result" not in last["run"]
            assert found[job][-1]["job"]["counts"]["success"] == 3

            checked = [finding async for finding in check_topics(settings)]
            assert [(one.check, one.state) for one in checked] == [("events", "ok")]
            assert f"1 of the topics {TOPIC} there" in checked[0].detail
            own_kafka.stop()  # runs go on, and nothing is dropped
            for number in range(5):
                assert (await call(client, number)).json()["result"] == {"twice": 2 * number}
            own_kafka.start()
            await told(own_kafka, *["run.succeeded"] * 6)


async def test_what_ends_while_no_dispatcher_runs_is_told_by_the_next(tmp_path: Path, own_kafka: KafkaServer) -> None:
    settings = with_events(tmp_path, own_kafka, {"url": own_kafka.url})
    async with started(settings, "gateway", "worker", "dispatcher") as platform:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            await call(client, 1)
            await told(own_kafka, "run.succeeded")
    async with started(settings, "gateway", "worker") as platform:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            later = (await call(client, 2)).json()["id"]
    async with started(settings, "dispatcher"):
        # What was told before may come twice, so the number of events says nothing of this run.
        found = await told(own_kafka)
        async with asyncio.timeout(PATIENCE):
            while "run.succeeded" not in names_of(found[later]):
                found = await told(own_kafka)
    assert names_of(found[later]) == ["run.created", "run.started", "run.succeeded"]
