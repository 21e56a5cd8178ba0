"""What the page cache costs: a page from memory, from files and from Redis, and what it adds where it has no part."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.quantiles import median, quantile
from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import PageStore
from scrapeyard.engines.cache.redis import RedisPages
from scrapeyard.engines.cache.stage import Cached
from scrapeyard.engines.http.site import Sites
from scrapeyard.engines.http.stage import FetchContext
from scrapeyard.engines.port import Caller, FetchRequest, FetchResponse
from scrapeyard.model import FetchPolicy
from scrapeyard.settings import CacheSettings

PAGE_BYTES = 18 * 1024
_MB = 2**20


class Cost(Struct, frozen=True, kw_only=True):
    """Microseconds for one fetch of an 18 KB page."""

    p50: float
    p99: float


async def measure(redis_url: str = "", count: int = 5000) -> dict[str, Cost]:
    """By name: `apart` (a request that wants nothing of the cache, the bare call taken off), `memory`, `disk`, and with
    a URL `redis`."""
    with tempfile.TemporaryDirectory() as folder:
        disk = DiskPages(Path(folder), limit_bytes=64 * _MB, max_page_bytes=_MB)
        found = await _over(disk, count, shared="disk")
    if redis_url:
        found |= await _over(RedisPages(redis_url, limit_bytes=64 * _MB, max_page_bytes=_MB), count, shared="redis")
    return found


async def _over(store: PageStore, count: int, *, shared: str) -> dict[str, Cost]:
    await store.start()
    cached, sites = Cached(_site, MemoryPages(64 * _MB), store, CacheSettings()), Sites()

    def asked(**policy: Any) -> FetchContext:
        return FetchContext.of(_REQUEST, Caller(policy=FetchPolicy(**policy)), sites)

    plain, kept, around = asked(), asked(max_age_seconds=3600), asked(max_age_seconds=3600, cache="around")
    await cached(kept)
    bare = await _time(lambda: _site(plain), count)
    apart = await _time(lambda: cached(plain), count)
    found = {
        "apart": Cost(p50=apart.p50 - bare.p50, p99=apart.p99 - bare.p99),
        "memory": await _time(lambda: cached(kept), count),
        shared: await _time(lambda: cached(around), count),
    }
    await cached.stop()
    await store.stop()
    return found


async def _time(work: Callable[[], Awaitable[FetchResponse]], count: int) -> Cost:
    took = []
    for _ in range(count):
        began = time.perf_counter_ns()
        await work()
        took.append((time.perf_counter_ns() - began) / 1000)
    return Cost(p50=median(took), p99=quantile(sorted(took), 0.99))


_REQUEST = FetchRequest(url="https://www.shop.example/products/tea?page=2", headers={"Accept": "text/html"})
_BODY = (b"<p>tea, 1.50 and more words</p>\n" * 600)[:PAGE_BYTES]
_HEADERS = (("content-type", "text/html; charset=utf-8"), ("date", "Sun, 15 Nov 2026 10:00:00 GMT"), ("etag", '"1"'))


async def _site(context: FetchContext) -> FetchResponse:
    return FetchResponse(
        url=context.target.url,
        status=200,
        headers=_HEADERS,
        body=_BODY,
        encoding="utf-8",
        elapsed_ms=0,
        bytes_received=1,
    )


if __name__ == "__main__":
    for name, cost in asyncio.run(measure()).items():
        print(f"{name:8} p50 {cost.p50:8.1f} µs   p99 {cost.p99:8.1f} µs")
