"""The whole engine, as workers have it: what becomes of a URL before the first stage."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.http.url import parse_target
from scrapeyard.engines.ledger import Ledger, Spent
from scrapeyard.engines.port import Caller, FetchRequest
from scrapeyard.errors import FetchFailed
from scrapeyard.model import BudgetLimits, ExitReason, FetchPolicy
from scrapeyard.queues.memory import MemoryQueue
from scrapeyard.settings import HttpSettings, Settings
from scrapeyard.store.sql import SqlStore
from scrapeyard.wiring.engine import WebParts, start_engine
from scrapeyard.wiring.pipeline import Engine
from tests.services.sqlite import migrated
from tests.sites.site import Site, page

BAD = FetchRequest(url="ftp://shop.example/")
Step = Callable[[], Awaitable[None]]


class Yard:
    """An engine, and what it shares with the gateway."""

    def __init__(self, engine: Engine, web: WebParts) -> None:
        self.engine = engine
        self.web = web

    async def refusal(self, request: FetchRequest, caller: Caller) -> FetchFailed:
        with pytest.raises(FetchFailed) as caught:
            await self.engine.fetch(request, caller)
        return caught.value


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    settings = Settings(data_dir=tmp_path, http=HttpSettings(allow_private=True, profile="none"))
    async with AsyncExitStack() as stack:

        async def up(start: Step, stop: Step) -> None:
            stack.push_async_callback(stop)
            await start()

        store, queue, web = SqlStore(migrated(tmp_path / "store.db")), MemoryQueue(), WebParts(settings)
        await up(store.start, store.stop)
        await up(queue.start, queue.stop)
        await web.start(up)
        yield Yard(await start_engine(settings, web, store, queue, worker_id="w", up=up), web)


def caller_of(**policy: Any) -> Caller:
    return Caller(job_id="job_1", policy=FetchPolicy(**policy), job_budget=BudgetLimits(requests=5), ledger=Ledger())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://shop.example/", "the URL 'ftp://shop.example/' has the scheme ftp; only http and https are fetched"),
        ("http://", "the URL 'http://' has no host that can be read"),
        ("shop.example", "the URL 'shop.example' is not a whole URL; write it as https://host/path"),
        (
            "http://me@shop.example/",
            "the URL 'http://me@shop.example/' carries a user name; send credentials in an Authorization header",
        ),
    ],
)
@pytest.mark.parametrize("policy", [{}, {"max_age_seconds": 60}, {"robots": "obey"}])
async def test_a_bad_url_is_told_and_neither_charged_nor_cached(
    yard: Yard, url: str, says: str, policy: dict[str, Any]
) -> None:
    caller = caller_of(**policy)
    refusal = await yard.refusal(FetchRequest(url=url), caller)
    assert (refusal.reason, refusal.message, refusal.details) == (ExitReason.FETCH_BAD_URL, says, {})
    assert caller.ledger.spent == Spent()
    assert (await yard.web.pages.stats()).pages == 0
    assert await yard.web.gate.known() == []


async def test_a_used_up_budget_is_told_before_a_bad_url_unless_the_cache_has_a_part(yard: Yard) -> None:
    for policy, reason in (({}, ExitReason.FETCH_BUDGET), ({"max_age_seconds": 60}, ExitReason.FETCH_BAD_URL)):
        caller = caller_of(budget=BudgetLimits(requests=1), **policy)
        caller.ledger.write(Spent(requests=1), "")
        assert (await yard.refusal(BAD, caller)).reason is reason


async def test_a_bad_url_is_told_before_a_bad_method_except_by_the_client_alone(yard: Yard) -> None:
    request = FetchRequest(url=BAD.url, method="BREW")
    assert (await yard.refusal(request, caller_of())).reason is ExitReason.FETCH_BAD_URL
    client = WreqEngine(HttpSettings(profile="none"))
    with pytest.raises(FetchFailed) as caught:
        await client.fetch(request, caller_of())
    assert caught.value.reason is ExitReason.FETCH_NOT_ALLOWED
    await client.stop()


async def test_the_url_of_a_fetch_is_parsed_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counting(url: str) -> Any:
        parsed.append(url)
        return parse_target(url)

    for name in ("http.stage", "http.checks", "cache.stage"):
        monkeypatch.setattr(f"scrapeyard.engines.{name}.parse_target", counting)
    async with Site(routes={"/": page(b"tea", content_type="text/html")}) as site:
        for _ in range(2):
            await yard.engine.fetch(FetchRequest(url=site.url("/")), caller_of(max_age_seconds=60))
        assert parsed == [site.url("/"), site.url("/")]
        assert len(site.asked) == 1


async def test_headers_that_are_too_large_are_refused_before_anything_waits_with_them(yard: Yard) -> None:
    refusal = await yard.refusal(FetchRequest(url="http://shop.example/", headers={"x": "x" * 900_000}), Caller())
    assert refusal.reason is ExitReason.FETCH_NOT_ALLOWED
    assert list(await yard.web.gate.known()) == []
