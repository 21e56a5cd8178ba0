"""From a call to runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scrapeyard.errors import SourceUnavailable
from scrapeyard.gateway.runs.admission import RunBuilder
from scrapeyard.gateway.runs.calls import ScrapeRequest
from scrapeyard.gateway.runs.schemas import ScrapeCall
from scrapeyard.model import Priority, RunStatus, Scraper, ScraperRef
from scrapeyard.model.identity import EVERYONE
from scrapeyard.queues.deliveries import deliver
from scrapeyard.queues.memory import MemoryQueue

START = 1_800_000_000.0
SCRAPER = Scraper(ref=ScraperRef(id="shop/product", version="1.2.0"), folder=Path("/files"))


async def choose(lane: str | None, _: Scraper) -> str:
    return lane or "default"


def builder(catalogue: Any) -> RunBuilder:
    lanes: Any = SimpleNamespace(choose=choose)
    return RunBuilder(catalogue, lanes, "builtin/page", MemoryQueue())


def asked(**call: Any) -> ScrapeRequest:
    given = ScrapeCall.model_validate({"scraper": "shop/product"} | call)
    return ScrapeRequest(call=given, wait=0, preference="", key=None, digest="", traceparent="t", identity=EVERYONE)


async def test_a_call_becomes_a_queued_run_for_each_input() -> None:
    many = {"urls": ["http://a.test/1", "http://a.test/2"], "lane": "bulk", "priority": "low"}
    call = asked(**many, policy={"retries": 2, "timeout_seconds": 5})
    runs = await builder(SimpleNamespace(resolve=lambda _: SCRAPER)).build(call, "gw1", START)
    assert [bytes(run.input) for run in runs] == [b'{"url":"http://a.test/1"}', b'{"url":"http://a.test/2"}']
    assert runs[0].id != runs[1].id
    assert {(run.scraper, run.status, run.reply_to) for run in runs} == {
        ("shop/product@1.2.0", RunStatus.QUEUED, "gw1")
    }
    delivery = deliver(runs[0])
    assert (delivery.lane, delivery.priority, delivery.max_attempts) == ("bulk", Priority.LOW, 3)
    assert (delivery.timeout_seconds, delivery.reply_to, delivery.traceparent) == (5.0, "gw1", "t")
    assert (delivery.attempt, delivery.queued_at, delivery.redelivered) == (1, START, False)


@pytest.mark.parametrize("obtainable", [True, False])
async def test_a_version_that_was_never_downloaded_is_waited_for(obtainable: bool) -> None:
    def resolve(_: str) -> Scraper:
        raise SourceUnavailable("not downloaded", **({"obtainable": True} if obtainable else {}))

    async def obtain(_: str) -> Scraper:
        return SCRAPER

    building = builder(SimpleNamespace(resolve=resolve, obtain=obtain)).build(asked(), "", START)
    if obtainable:
        (run,) = await building
        assert run.scraper == "shop/product@1.2.0"
    else:
        with pytest.raises(SourceUnavailable):
            await building
