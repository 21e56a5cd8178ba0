"""Forgetting, on every database, with blobs in a folder and cached pages in Redis: afterwards no byte of it is
found anywhere."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from msgspec import Raw
from msgspec.structs import replace

from scrapeyard.blobs import keys
from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.upkeep.archiving import Archiving
from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey
from scrapeyard.engines.cache.redis import RedisPages
from scrapeyard.errors import Refusal
from scrapeyard.gateway.cache import Caching
from scrapeyard.gateway.forgetting import ForgetCall, Forgetting
from scrapeyard.model import Artifact, ExitReason, FetchTrace, LogLine, new_id
from scrapeyard.model.drift import sights_of
from scrapeyard.model.export import Export, ExportState
from scrapeyard.model.job import ExportWish, ItemOutcome, Job, JobStatus, NewItem
from scrapeyard.model.schedule import Schedule
from scrapeyard.model.webhook import JobEventKind, WebhookDelivery
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.results.feeding import item_blocks
from scrapeyard.results.manifests import write_manifests
from scrapeyard.sealing.masters import LocalMasters
from scrapeyard.settings import RetentionSettings, Settings
from scrapeyard.store.dynamo.store import DynamoStore
from scrapeyard.store.dynamo.table.values import from_wires
from scrapeyard.store.ports.exports import PageState, Snapshot
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.operations import AnsweredPage, Meter, StoredPattern
from scrapeyard.store.ports.store import Store
from scrapeyard.store.recorder import Recorder
from scrapeyard.store.sql import SqlStore
from scrapeyard.store.tables.runs import METADATA
from scrapeyard.wiring.backends import store_at
from tests.contract.job_nouns import a_job
from tests.contract.job_steps import fetched, taken
from tests.contract.nouns import NOW, a_run, an_ending, begun
from tests.services.valkey import ValkeyServer

SECRET = "https://zebra-9417.example/person/quagga-5531"
OTHER = f"{SECRET}0"
"""Another page, whose URL begins with the one to forget."""
CLIENT = "okapi-7720"


@pytest.fixture
def blobs(tmp_path: Path) -> ObjectBlobs:
    return ObjectBlobs.in_folder(tmp_path / "blobs")


@pytest.fixture
async def pages(redis_url: str) -> AsyncIterator[RedisPages]:
    pages = RedisPages(redis_url, limit_bytes=2**20, max_page_bytes=2**20)
    await pages.start()
    yield pages
    await pages.stop()


@pytest.fixture
async def forgetting(store: Store, blobs: ObjectBlobs, pages: RedisPages) -> AsyncIterator[Forgetting]:
    async with forgetting_on(store, blobs, pages) as forgetting:
        yield forgetting


@asynccontextmanager
async def forgetting_on(store: Store, blobs: ObjectBlobs, pages: RedisPages) -> AsyncIterator[Forgetting]:
    queue = MemoryQueue()
    await queue.start()
    caching = Caching(Settings(), queue, pages, None)  # type: ignore[arg-type] # it warms nothing here
    async with Recorder(store.runs) as recorder:
        yield Forgetting(store, blobs, recorder, caching, lambda: NOW)
    await queue.stop()


async def found_in(store: Store, tmp_path: Path, server: ValkeyServer, text: str) -> list[str]:
    """Where the bytes of a text still stand: files of SQLite and blobs, rows of PostgreSQL, values of Redis."""
    needle = text.encode()
    found = [path.name for path in tmp_path.rglob("*") if path.is_file() and needle in path.read_bytes()]
    found += [name async for name, row in _stored(store) if any(needle in _seen(value) for value in row.values())]
    for key in server.command("KEYS", "*").split():
        if key.startswith(b"s") and needle in server.command("DUMP", key.decode()):
            found.append(key.decode())
    return found


async def _stored(store: Store) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """Every row of a database, with the name of its table or partition."""
    if isinstance(store, DynamoStore):
        answer, _ = await store._calls.ask("scan", TableName=store._calls.table)
        for row in map(from_wires, answer["Items"]):
            yield f"row of {row['pk']}", row
    if isinstance(store, SqlStore):
        for table in sorted(METADATA.tables):
            every = sqlalchemy.select(sqlalchemy.text("*")).select_from(sqlalchemy.text(table))
            for found in await store._database.fetch(every):
                yield f"row of {table}", dict(found)


def _seen(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


async def keep_page(pages: RedisPages, url: str) -> None:
    now = time.time()
    key = PageKey(id=url_digest(f"id {url}"), url=url_digest(url), site="zebra-9417.example")
    await pages.put(key, CachedPage(url=url, status=200, body=b"page", fetched_at=now, expires_at=now + 60))


async def a_forgettable_run(store: Store, blobs: ObjectBlobs, url: str, **given: Any) -> str:
    run = begun(a_run(input=Raw(b'{"url": "' + url.encode() + b'"}'), **given))
    html = keys.artifact(run.id, 1, "page.html")
    await blobs.put(html, f"<a href={url}>".encode(), "text/html")
    left = Artifact(name="page.html", content_type="text/html", size=9, key=html)
    logs = (LogLine(at_ms=1.0, stream="log", text=f"got {url}"),)
    ending = an_ending(run, artifacts=(left,), logs=logs, fetches=(FetchTrace(url=url),), finished_at=NOW)
    await store.runs.finish([ending])
    return run.id


async def a_job_of(store: Store, blobs: ObjectBlobs, *urls: str, **given: Any) -> Job:
    job = a_job(source={"kind": "list", "note": urls[0]}, **given)
    await store.jobs.create(job)
    items = [
        NewItem(key=f"item-{n}", input=Raw(f'{{"url": "{url}"}}'.encode()), referrer=urls[0])
        for n, url in enumerate(urls)
    ]
    await store.items.add(job.id, items, 0, NOW)
    await store.jobs.end_reading(job.id, 0, "", NOW)
    batch, taken_items = await taken(store, job)
    outcomes = []
    for item in taken_items:
        key = keys.item_object(job.id, item.key, keys.DATA)
        await blobs.put(key, urls[item.seq].encode(), "application/json")
        outcomes.append(
            ItemOutcome(
                seq=item.seq,
                attempt=1,
                exit_reason=ExitReason.SUCCEEDED,
                started_at=NOW,
                finished_at=NOW,
                result_key=key,
                result_bytes=1,
                logs=(LogLine(at_ms=1.0, stream="log", text=urls[item.seq]),),
            )
        )
    await store.batches.record(batch, "worker-1", 0, outcomes, NOW)
    await store.events.add(job.id, JobEventKind.STATUS, Raw(f'{{"url": "{urls[0]}"}}'.encode()), NOW)
    for leave, to in ((JobStatus.RUNNING, JobStatus.FINISHING), (JobStatus.FINISHING, JobStatus.COMPLETED)):
        await store.jobs.move(job.id, leave, to, NOW)
    ended = await fetched(store, job)
    await write_manifests(item_blocks(store.items, job.id), blobs, ended)
    export = Export(
        id=f"export_{job.id[4:]}", job_id=job.id, wish=ExportWish(type="full", format="csv"), created_at=NOW
    )
    await store.exports.add(export)
    file = keys.export(job.id, export.id, "full.csv")
    await blobs.put(file, urls[0].encode(), "text/csv")
    held = await store.exports.claim(export.id, "me", NOW, NOW + 9)
    assert held is not None
    await store.exports.end(
        replace(held, state=ExportState.DONE, key=file, finished_at=NOW, digest="d", lease_until=None)
    )
    return ended


async def the_rest(store: Store, url: str, owner: str) -> None:
    template = Raw(f'{{"url": "{url}"}}'.encode())
    schedule = Schedule(
        id=f"schedule_{owner or 'x'}", name="nightly", target="scrape", template=template, cron="0 3 * * *",
        time_zone="UTC", created_at=NOW, updated_at=NOW, anchor=NOW, next_due=NOW + 60, next_at=NOW + 60, owner=owner,
    )  # fmt: skip
    await store.schedules.add(schedule, 10)
    message = WebhookDelivery(
        id=f"delivery_{owner or 'x'}", subject="run_x", event="run.succeeded", url="https://hook.example/",
        host="hook.example", body=url.encode(), created_at=NOW, next_at=NOW, give_up_at=NOW + 9, owner=owner,
    )  # fmt: skip
    await store.webhooks.tell_run("run_x", [message])
    scope = f"{owner}: nightly" if owner else "nightly"
    page = Snapshot(page="p", url=url, job_id="job_1", seq=0, state=PageState(fields={"url": url}))
    await store.snapshots.put(scope, [page])
    answered = AnsweredPage(url=url, html=f"<a href={url}>", values={"title": url})
    learned = StoredPattern(
        id=new_id("pattern"),
        site="zebra-9417.example",
        client=owner,
        key="k",
        fields=("title",),
        status="ready",
        version=1,
        pattern="{}",
        examples=(answered,),
        created_at=NOW,
        changed_at=NOW,
    )
    assert await store.patterns.put(learned) is not None


async def test_a_url_is_found_nowhere_afterwards(
    store: Store,
    blobs: ObjectBlobs,
    pages: RedisPages,
    forgetting: Forgetting,
    tmp_path: Path,
    valkey_server: ValkeyServer,
) -> None:
    other = await a_forgettable_run(store, blobs, OTHER)
    await a_forgettable_run(store, blobs, SECRET)
    job = await a_job_of(store, blobs, SECRET, "https://shop.example/else")
    await the_rest(store, SECRET, "")
    await store.state.change("shop/product", "k", SECRET.encode(), NOW)
    await keep_page(pages, SECRET)
    call = ForgetCall(url=SECRET)
    dry = await forgetting.forget(ForgetCall(url=SECRET, dry_run=True))
    assert await found_in(store, tmp_path, valkey_server, SECRET)
    done = await forgetting.forget(call)
    expected = {
        "runs": 1,
        "jobs": 0,
        "items": 1,
        "exports": 1,
        "schedules": 1,
        "webhook_messages": 1,
        "snapshots": 1,
        "state": 1,
        "patterns": 1,
        "drift": 0,
    }
    assert dry.counts == expected
    assert done.counts == expected | {"cached_pages": 1}
    assert await store.runs.get(other) is not None
    await blobs.delete_prefix([keys.run_prefix(other)])
    await store.sweeps.delete_runs([other])
    await store.forgetting.compact()
    assert await found_in(store, tmp_path, valkey_server, SECRET) == []
    after = await fetched(store, job)
    assert after.counts == job.counts
    items = (await store.items.page(job.id, ItemFilter(), None, 10)).items
    assert [item.key for item in items] == ["forgotten-0", "item-1"]
    assert await blobs.size(keys.manifest(job.id, "full", 1))
    again = await forgetting.forget(call)
    assert not any(again.counts.values())


async def test_encrypted_content_is_nowhere_in_clear_and_is_forgotten(
    migrated_url: str, blobs: ObjectBlobs, pages: RedisPages, tmp_path: Path, valkey_server: ValkeyServer
) -> None:
    masters = LocalMasters([b"k" * 32])
    store = store_at(migrated_url, encrypts=True, masters=masters)
    await store.start()
    kept = await a_forgettable_run(store, blobs, SECRET)
    job = await a_job_of(store, blobs, SECRET, "https://shop.example/else")
    await the_rest(store, SECRET, "")
    await store.state.change("shop/product", "k", SECRET.encode(), NOW)
    where = await found_in(store, tmp_path, valkey_server, SECRET)
    assert not [name for name in where if name.startswith(("row of", "copy.db"))]
    await store.stop()
    store = store_at(migrated_url, masters=masters)  # switched off: what was encrypted is read
    await store.start()
    run = await store.runs.get(kept)
    assert run is not None
    assert SECRET.encode() in bytes(run.input)
    assert run.fetches[0].url == SECRET
    items = (await store.items.page(job.id, ItemFilter(), None, 10)).items
    assert (items[0].referrer, items[0].logs[0].text) == (SECRET, SECRET)
    assert [entry.bytes for entry in await store.state.entries("shop/product")] == [len(SECRET)]
    assert (await store.snapshots.get("nightly", ["p"]))["p"].state.fields == {"url": SECRET}
    async with forgetting_on(store, blobs, pages) as forgetting:
        done = await forgetting.forget(ForgetCall(url=SECRET))
    assert [done.counts[kind] for kind in ("runs", "items", "schedules", "webhook_messages", "snapshots", "state")] == [
        1
    ] * 6
    assert await store.runs.get(kept) is None
    items = (await store.items.page(job.id, ItemFilter(), None, 10)).items
    assert [(item.key, item.referrer) for item in items] == [("forgotten-0", ""), ("item-1", "")]
    assert (await fetched(store, job)).source == {"kind": "list", "note": "forgotten:"}
    await store.stop()


async def test_a_client_is_found_nowhere_afterwards(
    store: Store, blobs: ObjectBlobs, forgetting: Forgetting, tmp_path: Path, valkey_server: ValkeyServer
) -> None:
    await a_forgettable_run(store, blobs, OTHER, owner=CLIENT)
    await a_job_of(store, blobs, OTHER, owner=CLIENT)
    await the_rest(store, OTHER, CLIENT)
    meter = Meter(
        day="2026-01-01", writer="w", job_id="", site="", pool="", proxy_class="", requests=3, failures=0, bytes=1,
        client=CLIENT,
    )  # fmt: skip
    await store.meters.put([meter])
    done = await forgetting.forget(ForgetCall(client=CLIENT))
    assert (done.counts["runs"], done.counts["jobs"], done.counts["exports"], done.counts["snapshots"]) == (1, 1, 1, 1)
    assert await found_in(store, tmp_path, valkey_server, CLIENT) == []
    assert await found_in(store, tmp_path, valkey_server, OTHER) == []
    assert sum(use.requests for use in await store.meters.use(["client"], "2025-01-01")) == 3


async def test_a_site_goes_with_all_its_pages(
    store: Store, blobs: ObjectBlobs, forgetting: Forgetting, tmp_path: Path, valkey_server: ValkeyServer
) -> None:
    await a_forgettable_run(store, blobs, SECRET)
    kept = await a_forgettable_run(store, blobs, "https://zebra-9417.example.org/")
    await a_job_of(store, blobs, OTHER, SECRET)
    for site in ("zebra-9417.example", "www.zebra-9417.example", "azebra-9417.example"):
        await store.drift.observe("shop/product", site, "1.0.0", [sights_of({"price": 1})], NOW)
    done = await forgetting.forget(ForgetCall(site="Zebra-9417.example"))
    assert (done.counts["runs"], done.counts["items"], done.counts["drift"]) == (1, 2, 2)
    assert await found_in(store, tmp_path, valkey_server, "//zebra-9417.example/") == []
    assert await store.runs.get(kept) is not None


async def test_what_still_runs_must_end_first(store: Store, forgetting: Forgetting) -> None:
    run = begun(a_run(input=Raw(b'{"url": "' + SECRET.encode() + b'"}')))
    await store.runs.begin([run])
    with pytest.raises(Refusal, match=run.id):
        await forgetting.forget(ForgetCall(url=SECRET))
    assert await store.runs.get(run.id) is not None


async def test_archived_jobs_are_restored_first(store: Store, blobs: ObjectBlobs, forgetting: Forgetting) -> None:
    job = await a_job_of(store, blobs, SECRET)
    later = NOW + 86_400 * 2
    archiving = Archiving(Settings(retention=RetentionSettings(archive_days=1)), store, blobs, lambda: later)
    await archiving.run_once()
    assert (await forgetting.forget(ForgetCall(url=SECRET))).restoring == [job.id]
    archiving = Archiving(Settings(), store, blobs, lambda: later)
    await archiving.run_once()
    done = await forgetting.forget(ForgetCall(url=SECRET))
    assert (done.restoring, done.counts["items"]) == ([], 1)
