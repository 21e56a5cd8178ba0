"""HTTP/2, which sites choose in the TLS handshake."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trustme

from scrapeyard.engines.http.engine import WreqEngine
from scrapeyard.engines.port import Caller, FetchRequest
from tests.sites.http2 import Http2Site, http2_site


@pytest.fixture
async def modern(tmp_path: Path) -> AsyncIterator[tuple[Http2Site, Path]]:
    authority = trustme.CA()
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    async with http2_site(authority, tmp_path) as site:
        yield site, bundle


@pytest.mark.parametrize("profile", ["chrome", "firefox", "safari", "edge", "none"])
async def test_many_requests_share_one_connection(
    modern: tuple[Http2Site, Path], make_engine: Callable[..., WreqEngine], profile: str
) -> None:
    site, bundle = modern
    engine = make_engine(ca_bundle=bundle, profile=profile)
    first = await engine.fetch(FetchRequest(url=site.url("/first")), Caller())
    pages = await asyncio.gather(
        *(engine.fetch(FetchRequest(url=site.url(f"/{number}")), Caller()) for number in range(20))
    )
    assert {page.body for page in (first, *pages)} == {b"2"}
    assert len(site.clients) == 1
    assert len(site.asked) == 21


async def test_headers_and_bodies_are_sent(
    modern: tuple[Http2Site, Path], make_engine: Callable[..., WreqEngine]
) -> None:
    site, bundle = modern
    engine = make_engine(ca_bundle=bundle)
    request = FetchRequest(url=site.url("/"), method="POST", body=b"data", headers={"X-Mine": "1"}, session="login")
    await engine.fetch(request, Caller())
    await engine.fetch(FetchRequest(url=site.url("/"), session="login"), Caller())
    first, second = (dict(scope["headers"]) for scope in site.asked)
    assert site.asked[0]["method"] == "POST"
    assert first[b"x-mine"] == b"1"
    assert b"Chrome/" in first[b"user-agent"]
    assert second[b"cookie"] == b"seen=1"
