"""Receivers of item messages: their address comes from a caller, who is told of the job's end after its items."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw
from pydantic import SecretStr

from scrapeyard.blobs.objects import ObjectBlobs
from scrapeyard.dispatch.webhooks.news import Outbox
from scrapeyard.errors import SinkUnavailable
from scrapeyard.gateway.doors.firecrawl.documents import page_message
from scrapeyard.model.export import ITEMS_SINK, SinkState
from scrapeyard.model.job import ItemStatus, Job, JobStatus
from scrapeyard.model.webhook import JobEventKind, Webhook
from scrapeyard.results.sinks.items import ItemWebhookSink
from scrapeyard.settings import Settings, WebhookSettings
from scrapeyard.store.ports.jobs import ItemFilter
from scrapeyard.store.ports.webhooks import EventCursor, JobNewsItem
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.duties import make_webhook_engine
from tests.contract.job_nouns import a_job
from tests.contract.sinks.targets import SECRET, a_record, a_sink_batch
from tests.contract.sinks.yard import AWAY, Shelf, SinkYard
from tests.services.sqlite import migrated


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore(migrated(tmp_path / "jobs.sqlite"))
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


def a_sink(store: SqlStore, secret: str = SECRET) -> ItemWebhookSink:
    settings = Settings(webhooks=WebhookSettings(secret=SecretStr(secret)))
    engine = make_webhook_engine(settings)
    return ItemWebhookSink(settings.webhooks, store.jobs, engine, sealer=store.sealer, foreign=page_message)


async def made(store: SqlStore, url: str) -> None:
    hook = Webhook(url=url, events=("item.ended",))
    await store.jobs.create(a_job(id="job_1", webhook=Raw(msgspec.json.encode(hook))))


async def test_a_private_address_is_refused_for_good(store: SqlStore) -> None:
    await made(store, "http://127.0.0.1:1/hook")
    sink = a_sink(store)
    await sink.start()
    try:
        (refused,) = await sink.deliver(a_sink_batch(a_record()))
    finally:
        await sink.stop()
    assert "private" in refused.why


async def test_nothing_is_sent_unsigned_or_for_a_job_that_is_gone(store: SqlStore) -> None:
    with pytest.raises(SinkUnavailable, match="the job is gone"):
        await a_sink(store).deliver(a_sink_batch(a_record()))
    await made(store, "http://127.0.0.1:1/hook")
    with pytest.raises(SinkUnavailable, match="no secret"):
        await a_sink(store, secret="").deliver(a_sink_batch(a_record()))


async def told(store: SqlStore, job: Job) -> list[str]:
    """Messages of the events so far, as they are made from the job's row as it was at first."""
    events = tuple(await store.events.after(job.id, 0, 50))
    _, deliveries = Outbox(60).of_job(JobNewsItem(job=job, mark=EventCursor(status="running"), events=events), 1.0)
    return [each.event for each in deliveries]


@pytest.mark.parametrize("is_given_up", [False, True], ids=["delivered", "given up"])
async def test_the_end_of_a_job_is_told_after_its_items_and_is_never_lost(
    store: SqlStore, tmp_path: Path, is_given_up: bool
) -> None:
    shelf = Shelf(ITEMS_SINK)
    yard = SinkYard(store, ObjectBlobs.in_folder(tmp_path / "blobs"), shelf)
    hook = Webhook(url="https://you.example/hook", events=("item.ended", "job.completed"))
    job = await yard.job(3, [ITEMS_SINK], webhook=Raw(msgspec.json.encode(hook)))
    await yard.work(job)
    shelf.fails = AWAY if is_given_up else None
    assert await store.jobs.move(job.id, JobStatus.RUNNING, JobStatus.FINISHING, yard.clock())
    await yard.rounds(50, 3600)
    assert (await yard.delivery(job, ITEMS_SINK)).state is SinkState.ACTIVE, "its files are being written"
    assert await store.jobs.move(job.id, JobStatus.FINISHING, JobStatus.COMPLETED, yard.clock())
    await store.events.add(job.id, JobEventKind.STATUS, Raw(b'{"status": "completed"}'), yard.clock())
    await yard.rounds(12, 3600)
    (done,) = [each for each in await store.events.after(job.id, 0, 50) if each.kind == JobEventKind.SINK]
    assert msgspec.json.decode(done.data)["state"] == ("failed" if is_given_up else "done")
    assert await told(store, job) == ["job.completed"]
    await store.sinks.wake(job.id, yard.clock(), yard.clock() + 60)
    assert await store.items.redrive(job.id, ItemFilter(statuses=(ItemStatus.SUCCESS,)), None, yard.clock()) == 3
    await yard.work(job)
    await yard.finish(job)
    shelf.fails = None
    await yard.rounds(12, 3600)
    assert await told(store, job) == ["job.completed"] * 2, "it ended again"
    assert shelf.seen() == {f"item-{n}": 1 + (not is_given_up) for n in range(3)}
