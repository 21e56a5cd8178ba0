"""Sinks of every kind beside what reads their targets back: the real databases, buckets and receivers."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import obstore
import pyarrow.parquet as pq
import pytest
from msgspec import Raw
from obstore.store import LocalStore, ObjectStore
from sqlalchemy import text

from scrapeyard.blobs.buckets import Bucket, open_bucket
from scrapeyard.model import new_id
from scrapeyard.results.sinks.port import ResultSink, SinkBatch, SinkRecord
from scrapeyard.settings import Settings
from scrapeyard.store.database.database import make_backend
from scrapeyard.wiring.backends import make_sink
from tests.leaks import PATIENCE
from tests.services.kafka import KafkaServer
from tests.services.postgres import PostgresServer
from tests.services.seaweed import ACCESS_KEY, SECRET_KEY, SeaweedServer
from tests.sites.site import Site, page

SECRET = "a secret of sixteen or more"
KINDS = ("sqlite", "postgresql", "folder", "bucket", "webhook", "kafka")


class TargetStand(NamedTuple):
    """A sink's settings, and a way to read everything that its target holds, as a reader of it should see it."""

    settings: dict[str, Any]
    read: Callable[[], Awaitable[list[dict[str, Any]]]]


@asynccontextmanager
async def stand(kind: str, request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[TargetStand]:
    """A target of this kind that is empty."""
    if kind in ("sqlite", "postgresql"):
        url = f"sqlite:///{folder}/warehouse.db"
        if kind == "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres_server")
            url = server.database_url(server.create_database())
        yield TargetStand({"url": url}, lambda: rows_of(url))
    elif kind == "folder":
        place = folder / "lake"
        yield TargetStand({"url": f"file://{place}"}, lambda: records_of(LocalStore(place, mkdir=True)))
    elif kind == "bucket":
        seaweed: SeaweedServer = request.getfixturevalue("seaweed_server")
        given = {"url": f"s3://{seaweed.make_bucket()}/lake", "endpoint": seaweed.endpoint, "region": "us-east-1"}
        given |= {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
        yield TargetStand(given, lambda: records_of(open_bucket(Bucket(**given), timeout_seconds=PATIENCE, retries=1)))
    elif kind == "kafka":
        kafka: KafkaServer = request.getfixturevalue("kafka_server")
        topic = new_id("results")
        kafka.create(topic, partitions=2)
        place, _, options = kafka.url.partition("?")
        yield TargetStand(
            {"url": f"{place}/{topic}?{options}&message.max.bytes=4000000"},
            lambda: asyncio.to_thread(read_topic, kafka, topic),
        )
    else:
        async with Site(routes={"/take": page(b"ok")}) as site:
            yield TargetStand({"url": site.url("/take"), "secret": SECRET}, lambda: taken_by(site))


async def rows_of(url: str, table: str = "scrapeyard_results") -> list[dict[str, Any]]:
    """The rows of the table; none if there is no table."""
    engines = make_backend(url).open()
    try:
        async with engines.writer.connect() as connection:
            found = await connection.execute(text(f"SELECT * FROM {table} ORDER BY job_id, item_key"))
            rows = [dict(row) for row in found.mappings()]
    finally:
        await engines.reader.close()
        await engines.writer.dispose()
    return [
        row | {name: json.loads(row[name]) if isinstance(row[name], str) else row[name] for name in ("input", "data")}
        for row in rows
    ]


async def records_of(store: ObjectStore) -> list[dict[str, Any]]:
    """The rows of every file, with `day` of its folder; what a reader of the dataset sees."""
    found = []
    for meta in await obstore.list(store).collect_async():
        path = meta["path"]
        content = bytes(await (await obstore.get_async(store, path)).bytes_async())
        for row in pq.read_table(io.BytesIO(content)).to_pylist():
            documents = {name: json.loads(row[name]) for name in ("input", "data")}
            found.append(row | documents | {"day": path.partition("/")[0].removeprefix("day=")})
    return sorted(found, key=lambda row: (row["job_id"], row["item_key"]))


def read_topic(server: KafkaServer, topic: str) -> list[dict[str, Any]]:
    """The last record of each key, as a compacted topic keeps it."""
    found = {record.key(): json.loads(record.value() or b"") for record in server.read(topic)}
    return sorted(found.values(), key=lambda record: (record["job_id"], record["item_key"]))


async def taken_by(site: Site) -> list[dict[str, Any]]:
    """The records of all batches, each batch once, as its id lets a receiver tell."""
    batches = {asked.headers["scrapeyard-delivery"]: json.loads(asked.body) for asked in site.asked}
    found = [record for body in batches.values() for record in body.get("records", ())]
    return sorted(found, key=lambda record: (record["job_id"], record["item_key"]))


def settings_of(target: TargetStand, **more: Any) -> Settings:
    """Settings with this sink alone, called `one`."""
    sinks = {"targets": [{"name": "one", **target.settings, **more}], "timeout_seconds": PATIENCE}
    return Settings.model_validate({"sinks": sinks, "http": {"connect_seconds": PATIENCE}})


@asynccontextmanager
async def a_sink(target: TargetStand, **more: Any) -> AsyncIterator[ResultSink]:
    """The sink of a target, started."""
    settings = settings_of(target, **more)
    sink = make_sink(settings, settings.sinks.targets[0])
    await sink.start()
    try:
        yield sink
    finally:
        await sink.stop()


def a_record(number: int = 1, **given: Any) -> SinkRecord:
    """A record of the item `item-{number}`."""
    plain: dict[str, Any] = {
        "job_id": "job_1",
        "item_key": f"item-{number:04d}",
        "scraper": "shop/product",
        "version": "1.4.2",
        "status": "success",
        "exit_reason": "succeeded",
        "http_status": 200,
        "attempt": 1,
        "finished_at": 1_800_000_000.25,
        "input": Raw(b'{"url":"http://shop.example/1"}'),
        "data": Raw(b'{"title":"Kettle","price":12.5}'),
    }
    return SinkRecord(**(plain | given))


def a_sink_batch(*records: SinkRecord, number: int = 1, batch_id: str = "") -> SinkBatch:
    """A batch of these."""
    return SinkBatch(id=batch_id or new_id("batch"), job_id="job_1", number=number, records=records)
