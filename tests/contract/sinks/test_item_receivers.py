"""Receivers of item messages that cannot be reached: their address comes from a caller, not from the operator."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw
from pydantic import SecretStr

from scrapeyard.errors import SinkUnavailable
from scrapeyard.gateway.doors.firecrawl.documents import page_message
from scrapeyard.model.webhook import Webhook
from scrapeyard.results.sinks.items import ItemWebhookSink
from scrapeyard.settings import Settings, WebhookSettings
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.duties import make_webhook_engine
from tests.contract.job_nouns import a_job
from tests.contract.sinks.targets import SECRET, a_record, a_sink_batch
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
