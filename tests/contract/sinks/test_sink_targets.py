"""What single kinds of sinks promise beside the contract of all."""

import hashlib
import hmac
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka import KafkaError
from msgspec import Raw
from pydantic import ValidationError
from sqlalchemy import text

from scrapeyard.errors import SettingsInvalid, SinkUnavailable
from scrapeyard.settings import Settings
from scrapeyard.store.database.database import make_backend
from scrapeyard.wiring.backends import make_sink
from tests.contract.sinks.targets import (
    SECRET,
    TargetStand,
    a_record,
    a_sink,
    a_sink_batch,
    read_topic,
    rows_of,
    stand,
)
from tests.services.kafka import KafkaServer
from tests.sites.site import Site, page, redirect


async def nothing() -> list[dict[str, Any]]:
    return []


class TestTables:
    @pytest.fixture(params=["sqlite", "postgresql"])
    async def target(self, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
        async with stand(request.param, request, tmp_path) as found:
            yield found

    async def test_a_later_end_replaces_a_row_and_an_earlier_one_does_not(self, target: TargetStand) -> None:
        old, new = a_record(1, status="error", finished_at=1000.0), a_record(1, attempt=2, finished_at=2000.0)
        async with a_sink(target) as sink:
            for record in (old, new, old):
                await sink.deliver(a_sink_batch(record))
        assert [(row["status"], row["attempt"]) for row in await target.read()] == [("success", 2)]

    async def test_a_table_that_lacks_a_column_is_told(self, target: TargetStand) -> None:
        engines = make_backend(target.settings["url"]).open()
        async with engines.writer.begin() as connection:
            await connection.execute(text("CREATE TABLE scrapeyard_results (job_id TEXT, item_key TEXT)"))
        await engines.reader.close()
        await engines.writer.dispose()
        async with a_sink(target) as sink:
            with pytest.raises(SinkUnavailable, match="has no column scraper, version"):
                await sink.check()
            with pytest.raises(SinkUnavailable):
                await sink.deliver(a_sink_batch(a_record()))

    async def test_a_table_that_vanishes_is_made_again(self, target: TargetStand) -> None:
        async with a_sink(target) as sink:
            await sink.deliver(a_sink_batch(a_record()))
            engines = make_backend(target.settings["url"]).open()
            async with engines.writer.begin() as connection:
                await connection.execute(text("DROP TABLE scrapeyard_results"))
            await engines.reader.close()
            await engines.writer.dispose()
            with pytest.raises(SinkUnavailable):
                await sink.deliver(a_sink_batch(a_record()))
            await sink.deliver(a_sink_batch(a_record()))
        assert len(await target.read()) == 1


async def test_postgresql_refuses_alone_what_it_cannot_hold(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    odd = a_record(2, data=Raw(b'{"text":"a\\u0000b"}'))
    async with stand("postgresql", request, tmp_path) as target, a_sink(target) as sink:
        refused = await sink.deliver(a_sink_batch(a_record(1), odd, a_record(3)))
        assert [each.item_key for each in refused] == ["item-0002"]
        assert "Unicode" in refused[0].why
        assert [row["item_key"] for row in await target.read()] == ["item-0001", "item-0003"]


async def test_postgresql_refuses_alone_what_is_nested_too_deeply(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    odd = a_record(2, data=Raw(b"[" * 20_000 + b"]" * 20_000))
    async with stand("postgresql", request, tmp_path) as target, a_sink(target) as sink:
        refused = await sink.deliver(a_sink_batch(a_record(1), odd, a_record(3)))
        assert [(each.item_key, each.why) for each in refused] == [("item-0002", "stack depth limit exceeded")]
        assert [row["item_key"] for row in await target.read()] == ["item-0001", "item-0003"]


async def test_a_file_of_large_inputs_and_results_is_made(tmp_path: Path) -> None:
    """Together they are over what one frame may hold."""
    text = "x" * 350_000
    records = [
        a_record(n, input=Raw(f'{{"url":"{text}"}}'.encode()), data=Raw(f'"{text}"'.encode())) for n in range(100)
    ]
    async with a_sink(TargetStand({"url": f"file://{tmp_path}/lake"}, nothing)) as sink:
        await sink.deliver(a_sink_batch(*records))
        await sink.deliver(a_sink_batch(a_record(1, data=Raw(b'"' + b"y" * 70_000_000 + b'"'), finished_at=1.0)))
    found = ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive")
    assert found.count_rows() == 101


async def test_a_table_may_have_another_name_and_schema(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async with stand("postgresql", request, tmp_path) as target:
        url = target.settings["url"]
        engines = make_backend(url).open()
        async with engines.writer.begin() as connection:
            await connection.execute(text("CREATE SCHEMA scraping"))
        await engines.reader.close()
        await engines.writer.dispose()
        async with a_sink(target, table="scraping.results") as sink:
            assert "scraping.results" in await sink.check()
            await sink.deliver(a_sink_batch(a_record()))
        assert len(await rows_of(url, "scraping.results")) == 1


async def test_a_batch_over_midnight_is_a_file_for_each_day(tmp_path: Path) -> None:
    night = 1_800_000_000.0 - 1_800_000_000.0 % 86_400
    records = [a_record(n, finished_at=night + (n - 5)) for n in range(10)]
    async with a_sink(TargetStand({"url": f"file://{tmp_path}/lake"}, nothing)) as sink:
        for _ in range(2):
            await sink.deliver(a_sink_batch(*records, batch_id="job_1-one-00000001"))
    files = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "lake").rglob("*.parquet"))
    assert files == [f"lake/day=2027-01-{day}/job_1-one-00000001.parquet" for day in (14, 15)]
    found = ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive")
    assert found.count_rows(filter=ds.field("day") == "2027-01-14") == 5
    assert str(found.schema.field("finished_at").type) == "timestamp[us, tz=UTC]"


async def test_a_topic_refuses_alone_what_is_over_its_limit(own_kafka: KafkaServer) -> None:
    own_kafka.create("results", partitions=1)
    place, _, options = own_kafka.url.partition("?")
    url = (
        f"{place}/results?{options}&batch.num.messages=1"  # so that the mock, which cannot measure, refuses one record
    )
    async with a_sink(TargetStand({"url": url}, nothing)) as sink:
        await sink.deliver(a_sink_batch(a_record(0)))
        own_kafka.refuse("produce", 3, KafkaError.MSG_SIZE_TOO_LARGE)
        refused = await sink.deliver(a_sink_batch(a_record(1), a_record(2)))
    assert len(refused) == 1, "the third refusal was of a record that was sent alone"
    assert "max.message.bytes" in refused[0].why
    found = read_topic(own_kafka, "results")
    missing = {f"item-{n:04d}" for n in range(3)} - {each["item_key"] for each in found}
    assert missing == {refused[0].item_key}


async def test_a_producer_that_the_cluster_gave_up_is_replaced(own_kafka: KafkaServer) -> None:
    own_kafka.create("results", partitions=1)
    own_kafka.refuse("init_producer_id", 2, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    place, _, options = own_kafka.url.partition("?")
    target = TargetStand({"url": f"{place}/results?{options}"}, nothing)
    async with a_sink(target) as sink:
        for _ in range(2):  # the first producer may have failed before there was something to send
            with suppress(SinkUnavailable):
                await sink.deliver(a_sink_batch(a_record(1)))
        assert not await sink.deliver(a_sink_batch(a_record(2)))
    assert "item-0002" in [each["item_key"] for each in read_topic(own_kafka, "results")]


class TestReceivers:
    def target(self, site: Site, path: str) -> TargetStand:
        return TargetStand({"url": site.url(path), "secret": SECRET}, nothing)

    async def test_batches_are_signed_as_webhooks_are(self) -> None:
        async with Site(routes={"/take": page(b"ok")}) as site:
            async with a_sink(self.target(site, "/take")) as sink:
                await sink.deliver(a_sink_batch(a_record(1), batch_id="job_1-one-00000007", number=7))
            (asked,) = site.asked
        stamp, _, digest = asked.headers["scrapeyard-signature"].partition(",v1=")
        signed = stamp.removeprefix("t=").encode() + b"." + asked.body
        assert digest == hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert asked.headers["scrapeyard-delivery"] == "job_1-one-00000007"
        body = json.loads(asked.body)
        assert (body["id"], body["event"], body["sink"], body["number"]) == (
            "job_1-one-00000007",
            "sink.batch",
            "one",
            7,
        )
        assert body["records"][0]["data"] == {"title": "Kettle", "price": 12.5}

    async def test_what_is_not_taken_is_repeated_and_one_record_too_large_is_refused(self) -> None:
        busy = page(b"", status=503, retry_after="17")
        routes = {"/busy": busy, "/moved": redirect("/take"), "/small": page(b"", status=413)}
        async with Site(routes=routes) as site:
            async with a_sink(self.target(site, "/busy")) as sink:
                with pytest.raises(SinkUnavailable, match="answered 503") as told:
                    await sink.deliver(a_sink_batch(a_record()))
                assert told.value.retry_after == 17
            async with a_sink(self.target(site, "/moved")) as sink:
                with pytest.raises(SinkUnavailable, match="redirects are not followed"):
                    await sink.deliver(a_sink_batch(a_record()))
            async with a_sink(self.target(site, "/small")) as sink:
                with pytest.raises(SinkUnavailable, match="lower batch_records"):
                    await sink.deliver(a_sink_batch(a_record(1), a_record(2)))
                refused = await sink.deliver(a_sink_batch(a_record(1)))
                assert [each.item_key for each in refused] == ["item-0001"]

    async def test_an_answer_that_is_too_long_counts_by_its_status(self) -> None:
        long = b"x" * 200_000
        routes = {"/take": page(long), "/small": page(long, status=413), "/ill": page(long, status=500)}
        async with Site(routes=routes) as site:
            async with a_sink(self.target(site, "/take")) as sink:
                assert await sink.check()
                assert not await sink.deliver(a_sink_batch(a_record()))
            async with a_sink(self.target(site, "/small")) as sink:
                assert len(await sink.deliver(a_sink_batch(a_record()))) == 1
            async with a_sink(self.target(site, "/ill")) as sink:
                with pytest.raises(SinkUnavailable, match="answered 500"):
                    await sink.deliver(a_sink_batch(a_record()))


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        ([{"name": "a", "url": "mysql://host/db"}], "begin it with one of postgresql://"),
        ([{"name": "a", "url": "https://"}], "begin it with one of"),
        ([{"name": "A b", "url": "sqlite:///x.db"}], "name"),
        ([{"name": "a", "url": "sqlite:///x.db", "table": "x; DROP"}], "table"),
        ([{"name": "a", "url": "sqlite:///x.db"}] * 2, "two sinks are called a"),
        ([{"name": "a", "url": "https://host/", "secret": "short"}], "can be guessed"),
    ],
)
def test_targets_that_cannot_be_are_refused(targets: list[dict[str, str]], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Settings.model_validate({"sinks": {"targets": targets}})


def test_a_default_that_is_no_sink_is_refused() -> None:
    with pytest.raises(ValidationError, match="there is no sink b"):
        Settings.model_validate({"sinks": {"targets": [{"name": "a", "url": "sqlite:///x.db"}], "default": ["b"]}})


def test_a_receiver_needs_a_secret_and_a_database_known_options() -> None:
    settings = Settings.model_validate({"sinks": {"targets": [{"name": "a", "url": "https://host/"}]}})
    with pytest.raises(SettingsInvalid, match="no secret to sign with"):
        make_sink(settings, settings.sinks.targets[0])
    settings = Settings.model_validate({"sinks": {"targets": [{"name": "a", "url": "postgresql://h/d?odd=1"}]}})
    with pytest.raises(SettingsInvalid, match=r"sinks.targets: a: url: unknown option odd"):
        make_sink(settings, settings.sinks.targets[0])
    assert "hidden-place" not in repr(
        Settings.model_validate({"sinks": {"targets": [{"name": "a", "url": "s3://hidden-place"}]}})
    )
