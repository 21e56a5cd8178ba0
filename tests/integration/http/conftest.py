"""A site and engines that fetch from it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trustme

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import PLAIN, Caller, FetchRequest, FetchResponse, Route
from scrapeyard.model import Scraper
from scrapeyard.settings import HttpSettings
from scrapeyard.store.ports.operations import SessionStore
from tests.integration.http.stand import resolve
from tests.leaks import PATIENCE
from tests.sites.site import Site, page

PATIENT = {"allow_private": True, "connect_seconds": PATIENCE, "read_seconds": PATIENCE, "total_seconds": PATIENCE}
"""A busy machine is no time-out; whoever wants one says so."""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site() as site:
        yield site


@pytest.fixture
async def make_engine() -> AsyncIterator[Callable[..., WreqEngine]]:
    engines: list[WreqEngine] = []

    def make(resolve: Any = resolve, sessions: SessionStore | None = None, **settings: Any) -> WreqEngine:
        engine = WreqEngine(
            HttpSettings(**{**PATIENT, **settings}),
            resolve=resolve,
            sessions=sessions,
        )
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        await engine.stop()
        await engine.stop()


@pytest.fixture
async def fetch(make_engine: Callable[..., WreqEngine]) -> Callable[..., Awaitable[FetchResponse]]:
    engine = make_engine()
    await engine.start()

    async def fetch(url: str, *, scraper: Scraper | None = None, way: Route = PLAIN, **options: Any) -> FetchResponse:
        return await engine.fetch(FetchRequest(url=url, **options), Caller(scraper=scraper), way)

    return fetch


@pytest.fixture
async def secure() -> AsyncIterator[tuple[Site, trustme.CA]]:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("shop.test").configure_cert(context)
    async with Site(tls=context) as site:
        site.routes["/"] = page(b"secure")
        yield site, authority
