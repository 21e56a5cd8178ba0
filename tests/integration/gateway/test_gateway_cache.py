"""`/api/cache` on a gateway with a shared tier, and its commands."""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey, PageStore
from scrapeyard.engines.cache.redis import RedisPages
from scrapeyard.gateway.app import create_app
from scrapeyard.model import Invalidate, Priority
from scrapeyard.queues import messages as channels
from scrapeyard.queues.port import Queue
from scrapeyard.settings import CacheSettings, GatewaySettings, Settings
from tests.integration.gateway_stand import open_services
from tests.leaks import PATIENCE
from tests.services.valkey import ValkeyServer

MB = 2**20


@asynccontextmanager
async def gateway(
    folder: Path, pages: PageStore | None, settings: Settings | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, Queue]]:
    """The API, and the queue behind it."""
    async with AsyncExitStack() as stack:
        if pages is not None:
            await pages.start()
            stack.push_async_callback(pages.stop)
        services = await stack.enter_async_context(open_services(folder, settings or Settings()))
        app = create_app(replace(services, pages=pages))
        await stack.enter_async_context(app.router.lifespan_context(app))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway")
        yield await stack.enter_async_context(client), services.queue


def disk(folder: Path) -> DiskPages:
    return DiskPages(folder / "pages", limit_bytes=MB, max_page_bytes=MB)


async def keep(pages: PageStore, *urls: str) -> None:
    now = time.time()
    for url in urls:
        site = url.split("/")[2].removeprefix("www.")
        key = PageKey(id=url_digest(f"id {url}"), url=url_digest(url), site=site)
        await pages.put(key, CachedPage(url=url, status=200, body=b"page", fetched_at=now, expires_at=now + 60))


@pytest.mark.parametrize(
    ("body", "dropped", "signal"),
    [
        ({"url": "https://www.Shop.example:443/a#x"}, 1, Invalidate(url="https://www.shop.example/a")),
        ({"site": "img.shop.example"}, 2, Invalidate(site="shop.example")),
        ({"site": "::1"}, 0, Invalidate(site="::1")),
        ({"all": True}, 3, Invalidate()),
    ],
)
async def test_pages_are_forgotten_and_everyone_told(
    tmp_path: Path, body: dict[str, Any], dropped: int, signal: Invalidate
) -> None:
    pages = disk(tmp_path)
    async with gateway(tmp_path, pages) as (client, queue):
        await keep(pages, "https://www.shop.example/a", "https://shop.example/b", "https://other.example/")
        async with queue.listen(channels.SIGNALS) as messages:
            answer = await client.post("/api/cache/invalidate", json=body)
            assert (answer.status_code, answer.json()) == (200, {"dropped": dropped})
            assert channels.decode_signal(await anext(messages)) == signal
        assert (await client.get("/api/cache")).json()["shared"]["pages"] == 3 - dropped


NO_PAGES: list[Any] = [
    {},
    {"all": False},
    {"all": 1},
    {"url": "https://a.example/", "site": "a.example"},
    {"url": "ftp://a.example/"},
    {"url": "https://user@a.example/"},
    {"site": ""},
    {"site": "a b"},
    {"site": "x" * 300},
    {"site": "a:b"},
    {"pages": 1},
    [],
]


async def test_what_names_no_pages_is_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, disk(tmp_path)) as (client, _):
        for body in NO_PAGES:
            answer = await client.post("/api/cache/invalidate", json=body)
            assert answer.status_code in (400, 422), body
            assert answer.headers["content-type"] == "application/problem+json", body


async def test_the_state_is_told(tmp_path: Path) -> None:
    pages = disk(tmp_path)
    settings = Settings(cache=CacheSettings(memory_mb=2, max_age_seconds=5))
    async with gateway(tmp_path, pages, settings) as (client, _):
        await keep(pages, "https://shop.example/")
        document = (await client.get("/api/cache")).json()
        size = document["shared"].pop("bytes")
        assert 0 < size < 1000
        assert document == {
            "mode": "through",
            "max_age_seconds": 5,
            "memory_limit_bytes": 2 * MB,
            "shared": {"kind": "disk", "pages": 1, "limit_bytes": MB, "hits": 0, "misses": 0, "evicted": 0},
        }


async def test_without_a_shared_tier_the_workers_are_told_all_the_same(tmp_path: Path) -> None:
    async with gateway(tmp_path, None) as (client, queue), queue.listen(channels.SIGNALS) as messages:
        assert (await client.get("/api/cache")).json()["shared"] is None
        assert (await client.post("/api/cache/invalidate", json={"all": True})).json() == {"dropped": 0}
        assert channels.decode_signal(await anext(messages)) == Invalidate()


async def test_redis_away_is_said(tmp_path: Path, own_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapeyard.engines.cache.redis.ANSWER_SECONDS", PATIENCE)  # one that is gone is known at once
    pages = RedisPages(own_valkey.url, limit_bytes=MB, max_page_bytes=MB)
    async with gateway(tmp_path, pages) as (client, _):
        assert (await client.post("/api/cache/invalidate", json={"all": True})).status_code == 200
        own_valkey.stop()
        for answer in (
            await client.get("/api/cache"),
            await client.post("/api/cache/invalidate", json={"all": True}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


async def test_warming_makes_runs_that_fill_the_cache(tmp_path: Path) -> None:
    async with gateway(tmp_path, disk(tmp_path)) as (client, queue):
        urls = ["https://shop.example/1", "https://shop.example/2"]
        answer = await client.post("/api/cache/warm", json={"urls": urls, "max_age_seconds": 60})
        assert answer.status_code == 202
        runs = [run["id"] for run in answer.json()["runs"]]
        taken = await queue.take(["default"], 10, list(Priority), PATIENCE)
        assert [each.run_id for each in taken] == runs
        assert {
            (each.scraper, each.priority, each.fetching.max_age_seconds, each.fetching.cache) for each in taken
        } == {("builtin/page", Priority.LOW, 60, "")}
        assert (await client.get(f"/api/scrape/{runs[0]}")).status_code == 200


async def test_warming_by_a_scraper_where_the_cache_is_off(tmp_path: Path) -> None:
    settings = Settings(cache=CacheSettings(mode="off"))
    async with gateway(tmp_path, disk(tmp_path), settings) as (client, queue):
        body = {"urls": ["https://shop.example/1"], "scraper": "shop/product"}
        assert (await client.post("/api/cache/warm", json=body)).status_code == 202
        (taken,) = await queue.take(["default"], 10, list(Priority), PATIENCE)
        assert (taken.scraper, taken.fetching.max_age_seconds) == ("shop/product@1.4.2", 3600)
        assert taken.fetching.cache == "through"


NOT_WARMED: list[tuple[Any, int]] = [
    ({"urls": []}, 422),
    ({"urls": ["ftp://x/"]}, 422),
    ({"urls": ["https://a.example/"] * 1001}, 422),
    ({"urls": ["https://a.example/"] * 4}, 400),
    ({"urls": ["https://a.example/"], "max_age_seconds": 0}, 422),
    ({"urls": ["https://a.example/"], "scraper": "no/such"}, 404),
]


async def test_what_cannot_be_warmed_is_refused(tmp_path: Path) -> None:
    settings = Settings(gateway=GatewaySettings(max_urls=3))
    async with gateway(tmp_path, disk(tmp_path), settings) as (client, _):
        for body, status in NOT_WARMED:
            assert (await client.post("/api/cache/warm", json=body)).status_code == status, body
