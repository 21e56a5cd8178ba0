"""Searches by an outside engine over a real connection: what is kept of its answer, and what goes wrong."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scrapeyard.engines.http.dns import GuardedDns
from scrapeyard.engines.solver.firecrawl import FirecrawlSolver
from scrapeyard.engines.solver.port import SearchQuestion, WebHit
from scrapeyard.engines.solver.searching import MAX_SEARCH_BYTES
from scrapeyard.errors import FetchFailed
from scrapeyard.model import ExitReason
from scrapeyard.settings import EscalationSettings, HttpSettings
from tests.leaks import PATIENCE
from tests.services.firecrawl import KEY, SearchServer, serving

QUESTION = SearchQuestion(query="lamp", limit=2, timeout=int(PATIENCE * 1000))


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with serving() as server:
        yield server


@asynccontextmanager
async def engine(url: str, **more: Any) -> AsyncIterator[FirecrawlSolver]:
    """It stands on a private address, which the guard refuses for pages and the operator chose for the engine."""
    settings = EscalationSettings(solver="firecrawl", solver_url=url, solver_key=KEY, solver_seconds=PATIENCE, **more)
    solver = FirecrawlSolver(settings, dns=GuardedDns(HttpSettings()), max_bytes=1000)
    await solver.start()
    try:
        yield solver
    finally:
        await solver.stop()


async def test_what_is_kept_of_an_answer(server: SearchServer) -> None:
    urls = ("javascript:alert(1)", "", "http://a.example/" + "x" * 9000, *(f"http://a.example/{n}" for n in range(9)))
    hits = [{"url": url, "title": "t" * 9000, "position": "3", "unknown": {}} for url in urls]
    pictures = [{"url": "http://a.example/", "imageUrl": "file:///etc/passwd"}]
    hits.insert(0, {"title": "no address"})
    server.body = {"success": True, "data": {"web": hits, "images": pictures, "tools": [1]}}
    async with engine(server.url) as solver:
        found = await solver.search(QUESTION)
    assert found.web == tuple(WebHit(url=f"http://a.example/{n}", title="t" * 5000, position=3) for n in range(2))
    assert (found.news, found.images) == ((), ())


FAILURES: list[tuple[int, bytes | dict[str, Any], ExitReason, str]] = [
    (401, {"error": f"bad token {KEY}"}, ExitReason.FETCH_CONNECT, "refuses us with 401: bad token \\*\\*\\*; check"),
    (429, b"<p>slow down</p>", ExitReason.FETCH_CONNECT, "refuses us with 429"),
    (400, {"success": False, "error": f"no {KEY}"}, ExitReason.FETCH_STATUS, "refuses the search with 400: no \\*"),
    (200, {"success": False, "error": "broken"}, ExitReason.FETCH_STATUS, "refuses the search with 200: broken"),
    (302, {"success": True}, ExitReason.FETCH_STATUS, "with 302"),
    (404, b"<p>not here</p>", ExitReason.FETCH_CONNECT, "does not speak Firecrawl's protocol"),
    (200, b'{"success": true, "data": [7]}', ExitReason.FETCH_CONNECT, "does not speak"),
    (200, b'{"success": true, "data": {"web": [{"title": {}}]}}', ExitReason.FETCH_CONNECT, "not speak"),
    (200, b" " * (MAX_SEARCH_BYTES + 1), ExitReason.FETCH_PROTOCOL, "answers too much"),
]


@pytest.mark.parametrize(("status", "body", "reason", "words"), FAILURES, ids=lambda given: str(given)[:30])
async def test_what_goes_wrong(
    server: SearchServer, status: int, body: bytes | dict[str, Any], reason: ExitReason, words: str
) -> None:
    server.status, server.body = status, body
    async with engine(server.url) as solver:
        with pytest.raises(FetchFailed, match=words) as failed:
            await solver.search(QUESTION)
    assert failed.value.reason == reason
    assert KEY not in f"{failed.value.message} {failed.value.details}"


async def test_an_engine_that_is_away_or_slow(server: SearchServer) -> None:
    async with engine("http://127.0.0.1:1") as solver:
        with pytest.raises(FetchFailed, match=r"127\.0\.0\.1:1 does not answer"):
            await solver.search(QUESTION)
    server.gate.clear()
    async with engine(server.url) as solver:
        with pytest.raises(FetchFailed, match="did not answer in time"):
            await solver.search(SearchQuestion(query="lamp", limit=2, timeout=50))


async def test_searches_count_as_pages_of_the_day(server: SearchServer) -> None:
    async with engine(server.url, solver_pages_daily=1) as solver:
        await solver.search(QUESTION)
        with pytest.raises(FetchFailed, match="pages of this day") as failed:
            await solver.search(QUESTION)
    assert failed.value.reason == ExitReason.FETCH_BUDGET
    assert len(server.asked) == 1
