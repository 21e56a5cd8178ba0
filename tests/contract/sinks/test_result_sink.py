"""What every sink promises, on the real target: what is delivered is there, whole, and a repeated batch is harmless."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path

import pytest
from msgspec import Raw

from scrapeyard.errors import SinkUnavailable
from scrapeyard.results.sinks.port import ResultSink
from tests.contract.sinks.targets import KINDS, TargetStand, a_record, a_sink, a_sink_batch, stand
from tests.leaks import PATIENCE


@pytest.fixture(params=KINDS)
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TargetStand]:
    """An empty target of each kind."""
    async with stand(request.param, request, tmp_path) as found:
        yield found


@pytest.fixture
async def sink(target: TargetStand) -> AsyncIterator[ResultSink]:
    """Its sink."""
    async with a_sink(target) as sink:
        yield sink


async def test_records_arrive_whole(target: TargetStand, sink: ResultSink) -> None:
    odd = a_record(
        2,
        status="error",
        exit_reason="fetch_status",
        http_status=None,
        attempt=3,
        error="the site answered 503: 닫힘",
        data=Raw(b"null"),
    )
    assert not await sink.deliver(a_sink_batch(a_record(1), odd))
    first, second = await target.read()
    assert (first["job_id"], first["item_key"], first["status"]) == ("job_1", "item-0001", "success")
    assert (first["scraper"], first["version"], first["attempt"]) == ("shop/product", "1.4.2", 1)
    assert (first["http_status"], first["error"]) == (200, None)
    assert first["input"] == {"url": "http://shop.example/1"}
    assert first["data"] == {"title": "Kettle", "price": 12.5}
    at = first["finished_at"]
    at = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    assert at.replace(tzinfo=None) == datetime(2027, 1, 15, 8, 0, 0, 250_000)
    assert (second["status"], second["exit_reason"], second["http_status"]) == ("error", "fetch_status", None)
    assert (second["error"], second["attempt"], second["data"]) == ("the site answered 503: 닫힘", 3, None)


async def test_a_type_that_changes_between_records_changes_no_value(target: TargetStand, sink: ResultSink) -> None:
    values = ["12", 12, 12.5, True, None, [1, "a"], {"amount": 12}, "2026-01-31", 2**60, "é\u2028"]
    encoded = [
        '"12"',
        "12",
        "12.5",
        "true",
        "null",
        '[1,"a"]',
        '{"amount":12}',
        '"2026-01-31"',
        str(2**60),
        '"é\\u2028"',
    ]
    records = [a_record(n, data=Raw(f'{{"price":{each}}}'.encode())) for n, each in enumerate(encoded)]
    assert not await sink.deliver(a_sink_batch(*records))
    found = [record["data"]["price"] for record in await target.read()]
    assert found == values
    assert [type(each) for each in found] == [type(each) for each in values]


async def test_a_repeated_batch_is_there_once(target: TargetStand, sink: ResultSink) -> None:
    batch = a_sink_batch(*(a_record(number) for number in range(20)))
    for _ in range(3):
        assert not await sink.deliver(batch)
    assert [record["item_key"] for record in await target.read()] == [f"item-{number:04d}" for number in range(20)]


async def test_a_batch_repeated_by_another_process_is_there_once(target: TargetStand, sink: ResultSink) -> None:
    batch = a_sink_batch(*(a_record(number) for number in range(3)))
    await sink.deliver(batch)
    async with a_sink(target) as other:
        await other.deliver(batch)
    assert len(await target.read()) == 3


async def test_it_can_be_checked_and_a_check_leaves_no_record(target: TargetStand, sink: ResultSink) -> None:
    words = await sink.check()
    assert words
    assert "testtest" not in words
    assert await target.read() == []


async def test_a_large_record_arrives(target: TargetStand, sink: ResultSink) -> None:
    long = "x" * 3_000_000
    await sink.deliver(a_sink_batch(a_record(1, data=Raw(f'{{"text":"{long}"}}'.encode()))))
    assert (await target.read())[0]["data"]["text"] == long


async def ends(is_over: Callable[[], bool]) -> None:
    """The thread of a database file that could not be opened ends by itself, and must not outlive the loop."""
    async with asyncio.timeout(PATIENCE):
        while not is_over():
            await asyncio.sleep(0.01)


AWAY = {
    "sqlite": {"url": "sqlite:////proc/no/such/place.db"},
    "postgresql": {"url": "postgresql://nobody@127.0.0.1:1/none"},
    "folder": {"url": "file:///proc/no/such/place"},
    "bucket": {"url": "s3://none", "endpoint": "http://127.0.0.1:1", "access_key": "a", "secret_key": "b"},
    "webhook": {"url": "http://127.0.0.1:1/", "secret": "a secret of sixteen or more"},
    "kafka": {"url": "kafka://127.0.0.1:1/results"},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_target_that_is_away_is_told_by_one_error(kind: str) -> None:
    async with a_sink(TargetStand(AWAY[kind], lambda: None)) as sink:  # type: ignore[arg-type,return-value]
        with pytest.raises(SinkUnavailable):
            await sink.deliver(a_sink_batch(a_record()))
        with pytest.raises(SinkUnavailable):
            await sink.check()
    await ends(lambda: not any("_connection_worker" in thread.name for thread in threading.enumerate()))
