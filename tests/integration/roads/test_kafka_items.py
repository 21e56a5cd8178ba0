"""Jobs whose items are the records of a Kafka topic, from a whole server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition

from scrapeyard.errors import QueueUnavailable
from scrapeyard.inputs import kafka
from scrapeyard.settings import Settings
from tests.integration.wiring.test_broker_road import settings_of, started
from tests.leaks import PATIENCE
from tests.services.kafka import KafkaServer


@pytest.fixture
def topic(kafka_server: KafkaServer) -> str:
    """An empty topic of two partitions that jobs may read."""
    name = f"crawl.{uuid4().hex[:12]}"
    kafka_server.create(name, partitions=2)
    return name


@pytest.fixture
async def client(tmp_path: Path, kafka_server: KafkaServer) -> AsyncIterator[httpx.AsyncClient]:
    given = settings_of(tmp_path, {}).model_dump()
    given["jobs"] |= {"kafka_url": kafka_server.url, "kafka_topics": ["crawl.*"], "round_seconds": 0.05}
    async with started(Settings.model_validate(given), "gateway", "worker", "dispatcher") as platform:
        assert platform.gateway is not None
        async with httpx.AsyncClient(base_url=platform.gateway.url, timeout=PATIENCE) as client:
            yield client


async def make(client: httpx.AsyncClient, **kafka: Any) -> httpx.Response:
    return await client.post("/api/jobs", json={"scraper": "shop/product", "kafka": kafka})


async def ended(client: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while (found := (await client.get(f"/api/jobs/{job['id']}")).json())["status"] not in ("completed", "failed"):
            await asyncio.sleep(0.02)
    return dict(found)


async def inputs(client: httpx.AsyncClient, job: dict[str, Any]) -> list[int]:
    found = (await client.get(f"/api/jobs/{job['id']}/items", params={"limit": 100})).json()["items"]
    return sorted(item["input"]["n"] for item in found)


async def test_a_group_is_moved_on_from_job_to_job(
    client: httpx.AsyncClient, kafka_server: KafkaServer, topic: str
) -> None:
    kafka_server.write(topic, [b'{"n": %d}' % number for number in range(6)])
    first = await ended(client, (await make(client, topic=topic, group="feed")).json())
    assert (first["status"], await inputs(client, first)) == ("completed", list(range(6)))
    kafka_server.write(topic, [b'{"n":\n 6}', b'{"n": 7}', b"rubbish"])
    second = await ended(client, (await make(client, topic=topic, group="feed")).json())
    assert (await inputs(client, second), second["skipped_rows"]) == ([6, 7], 1)
    third = await ended(client, (await make(client, topic=topic, group="feed")).json())
    assert (third["status"], third["counts"]["total"]) == ("completed", 0)
    some = await ended(client, (await make(client, topic=topic, limit=4)).json())
    assert some["counts"]["total"] + some["skipped_rows"] == 4


async def test_records_that_were_removed_before_a_group_came_to_them_are_told(
    client: httpx.AsyncClient, kafka_server: KafkaServer
) -> None:
    topic = f"crawl.{uuid4().hex[:12]}"
    kafka_server.create(topic, partitions=1)
    kafka_server.write(topic, [b'{"n": %d}' % number for number in range(3)])
    first = await ended(client, (await make(client, topic=topic, group="slow")).json())
    assert (await inputs(client, first), first["warnings"]) == ([0, 1, 2], [])
    big = [b'{"n": %d, "text": "%s"}' % (number, b"x" * 900_000) for number in range(3, 13)]
    kafka_server.write(topic, big)  # the mock keeps 5 MB of a partition
    kafka_server.write(topic, [b'{"n": 99}'])
    second = await ended(client, (await make(client, topic=topic, group="slow")).json())
    assert (second["status"], await inputs(client, second)) == ("completed", [99])
    assert any("removed by its retention" in words for words in second["warnings"])


async def test_a_group_beyond_the_end_of_a_topic_that_was_made_again_starts_anew(
    client: httpx.AsyncClient, kafka_server: KafkaServer
) -> None:
    topic = f"crawl.{uuid4().hex[:12]}"
    kafka_server.create(topic, partitions=1)
    kafka_server.write(topic, [b'{"n": %d}' % number for number in range(3)])
    consumer = Consumer({"bootstrap.servers": kafka_server.hosts, "group.id": "old"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1000)], asynchronous=False)
    await asyncio.to_thread(consumer.close)
    job = await ended(client, (await make(client, topic=topic, group="old")).json())
    assert await inputs(client, job) == [0, 1, 2]


async def test_a_job_reads_on_until_the_topic_is_idle(
    client: httpx.AsyncClient, kafka_server: KafkaServer, topic: str
) -> None:
    job = (await make(client, topic=topic, limit=5, idle_seconds=600)).json()
    for number in range(5):
        kafka_server.write(topic, [b'{"n": %d}' % number])
    found = await ended(client, job)
    assert await inputs(client, found) == [0, 1, 2, 3, 4]
    quiet = await ended(client, (await make(client, topic=topic, limit=50, idle_seconds=0.3, start="latest")).json())
    assert (quiet["status"], quiet["counts"]["total"]) == ("completed", 0)


async def test_a_reader_that_fails_half_way_loses_and_doubles_nothing(
    client: httpx.AsyncClient, kafka_server: KafkaServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka_server.write(topic, [b'{"n": %d}' % number for number in range(40)])
    take, calls = kafka._Reading.take, 0

    def fails_once(reading: kafka._Reading, messages: Sequence[Any]) -> list[bytes]:
        nonlocal calls
        calls += 1
        if calls == 2:
            kafka_server.write(topic, [b'{"n": 99}'])  # later than the spans: not of this job
            raise QueueUnavailable("the reader was hurt")
        return take(reading, messages)

    monkeypatch.setattr(kafka, "BATCH", 10)
    monkeypatch.setattr(kafka._Reading, "take", fails_once)
    job = await ended(client, (await make(client, topic=topic, group="hurt")).json())
    assert await inputs(client, job) == list(range(40))
    later = await ended(client, (await make(client, topic=topic, group="hurt")).json())
    assert await inputs(client, later) == [99]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"topic": "private"}, "jobs.kafka_topics"),
        ({"topic": "a b"}, "topic"),
        ({"topic": "crawl.x", "idle_seconds": 5}, "limit"),
        ({"topic": "crawl.x", "group": "g", "offsets": {"0": 1}}, "offsets"),
        ({"topic": "crawl.x", "brokers": "kafka://169.254.169.254:80"}, "brokers"),
    ],
)
async def test_what_cannot_be_read_is_refused(client: httpx.AsyncClient, asked: dict[str, Any], words: str) -> None:
    refused = await make(client, **asked)
    assert refused.status_code in (400, 422)
    assert words in refused.text
