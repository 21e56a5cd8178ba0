"""The contract of the tiers that keep pages: memory, Redis, files."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from scrapeyard.engines.cache.coding import UnreadablePage, decode, encode
from scrapeyard.engines.cache.disk import DiskPages
from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.memory import MemoryPages
from scrapeyard.engines.cache.port import CachedPage, PageKey, PageStore, StoreStats
from scrapeyard.engines.cache.redis import RedisPages
from scrapeyard.engines.cache.shared import TimeLimitedPages
from scrapeyard.errors import Unavailable
from tests.leaks import PATIENCE, processes, until
from tests.services.valkey import ValkeyServer

T = TypeVar("T", bound=PageStore)
LIMIT = 100_000
MAX_PAGE = 60_000


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


class Memory:
    """The near tier in the shape of the port."""

    def __init__(self, pages: MemoryPages) -> None:
        self._pages = pages

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def get(self, key: PageKey) -> CachedPage | None:
        return self._pages.get(key)

    async def put(self, key: PageKey, page: CachedPage) -> None:
        self._pages.put(key, page)

    async def drop(self, url: str) -> int:
        return self._pages.drop(url)

    async def drop_site(self, site: str) -> int:
        return self._pages.drop_site(site)

    async def drop_all(self) -> int:
        return self._pages.drop_all()

    async def stats(self) -> StoreStats:
        return self._pages.stats()

    async def claim(self, name: str, seconds: float) -> bool:
        return True

    async def release(self, name: str) -> None: ...


@dataclass
class Tier:
    """One kind of store."""

    kind: str
    store: PageStore
    clock: Clock
    reopen: Callable[[], Awaitable[PageStore]]
    made: list[PageStore] = field(default_factory=list)

    def page(self, body: bytes = b"page", *, seconds: float = 3600, **more: Any) -> CachedPage:
        return page(self.clock.now, body, seconds, **more)


def page(now: float, body: bytes = b"page", seconds: float = 3600, **more: Any) -> CachedPage:
    """Redis counts its seconds by a clock of its own, so that what must be found again lasts long."""
    return CachedPage(
        **{
            "url": "https://shop.example/after",
            "status": 200,
            "headers": (("Content-Type", "text/html"), ("ETag", '"1"')),
            "body": body,
            "encoding": "utf-8",
            "redirects": ("https://shop.example/before",),
            "fetched_at": now,
            "expires_at": now + seconds,
            **more,
        }
    )


def key(name: str, url: str = "https://shop.example/", site: str = "shop.example") -> PageKey:
    return PageKey(id=url_digest(name), url=url_digest(url), site=site)


@asynccontextmanager
async def running(store: T) -> AsyncIterator[T]:
    """Started, and stopped whatever happens."""
    await store.start()
    try:
        yield store
    finally:
        await store.stop()


def redis_pages(url: str, limit_bytes: int = LIMIT, **more: Any) -> RedisPages:
    return RedisPages(url, limit_bytes=limit_bytes, max_page_bytes=MAX_PAGE, **more)


@pytest.fixture(params=["memory", "redis", "disk"])
async def tier(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Tier]:
    clock, made = Clock(), []
    kept = MemoryPages(LIMIT, clock)

    def make() -> PageStore:
        if request.param == "memory":
            return Memory(kept)
        if request.param == "redis":
            url = request.getfixturevalue("redis_url") if not made else urls[0]
            urls.append(url)
            return redis_pages(url, clock=clock)
        return DiskPages(tmp_path / "pages", limit_bytes=LIMIT, max_page_bytes=MAX_PAGE, clock=clock)

    async def reopen() -> PageStore:
        if made:
            await made[-1].stop()
        store = make()
        await store.start()
        made.append(store)
        return store

    urls: list[str] = []
    yield Tier(request.param, await reopen(), clock, reopen, made)
    for store in made:
        await store.stop()
        await store.stop()


async def test_a_page_comes_back_as_it_was(tier: Tier) -> None:
    for number, body in enumerate((b"", b"\0\xff" * 100, b"<p>tea</p>" * 4000, os.urandom(3000))):
        kept = tier.page(body, status=404, vary=())
        await tier.store.put(key(str(number)), kept)
        assert await tier.store.get(key(str(number))) == kept


async def test_what_is_not_there_is_a_miss(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page())
    assert await tier.store.get(key("b")) is None
    stats = await tier.store.stats()
    assert (stats.pages, stats.misses, stats.limit_bytes) == (1, 1, LIMIT)


async def test_a_page_replaces_the_one_before(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page(b"old" * 1000))
    tier.clock.now += 1
    await tier.store.put(key("a"), tier.page(b"new"))
    found = await tier.store.get(key("a"))
    assert found is not None
    assert found.body == b"new"
    assert (await tier.store.stats()).pages == 1
    await tier.store.drop_all()
    assert (await tier.store.stats()).bytes == 0


async def test_its_time_is_over_at_the_moment_it_expires(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page(seconds=3600))
    tier.clock.now += 3599.9
    assert await tier.store.get(key("a")) is not None
    tier.clock.now += 0.2
    assert await tier.store.get(key("a")) is None


async def test_an_expired_page_is_not_kept(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page(seconds=0))
    assert (await tier.store.stats()).pages == 0


async def test_a_page_that_is_too_large_is_not_kept(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page(os.urandom(LIMIT + 1)))
    assert await tier.store.get(key("a")) is None
    assert (await tier.store.stats()).bytes == 0


async def test_a_page_that_is_too_large_now_takes_the_old_one_away_or_leaves_it(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page(b"small"))
    tier.clock.now += 1
    await tier.store.put(key("a"), tier.page(os.urandom(LIMIT + 1)))
    found = await tier.store.get(key("a"))
    assert found is None or found.body == b"small"


async def test_the_least_recently_used_go_first(tier: Tier) -> None:
    for number in range(5):
        tier.clock.now += 1
        await tier.store.put(key(str(number)), tier.page(os.urandom(18_000)))
    tier.clock.now += 1
    assert await tier.store.get(key("0")) is not None
    tier.clock.now += 1
    await tier.store.put(key("5"), tier.page(os.urandom(18_000)))
    assert await tier.store.get(key("1")) is None
    assert await tier.store.get(key("0")) is not None
    stats = await tier.store.stats()
    assert stats.evicted == 1
    assert stats.bytes <= LIMIT


async def test_one_url_is_dropped_with_all_its_variants(tier: Tier) -> None:
    other = "https://shop.example/other"
    for name, url in (("a", "https://shop.example/"), ("b", "https://shop.example/"), ("c", other)):
        await tier.store.put(key(name, url), tier.page())
    assert await tier.store.drop("https://shop.example/") == 2
    assert await tier.store.get(key("a")) is None
    assert await tier.store.get(key("c", other)) is not None
    assert await tier.store.drop("https://shop.example/") == 0


async def test_a_site_is_dropped_whole(tier: Tier) -> None:
    for number in range(20):
        await tier.store.put(key(f"s{number}", f"https://shop.example/{number}"), tier.page())
    await tier.store.put(key("o", "https://other.example/", "other.example"), tier.page())
    assert await tier.store.drop_site("shop.example") == 20
    assert await tier.store.drop_site("shop.example") == 0
    assert (await tier.store.stats()).pages == 1
    assert await tier.store.drop_all() == 1
    assert await tier.store.drop_all() == 0


async def test_hits_and_misses_are_counted(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page())
    for name in ("a", "a", "b"):
        await tier.store.get(key(name))
    stats = await tier.store.stats()
    assert (stats.kind, stats.hits, stats.misses) == (tier.kind, 2, 1)


async def test_pages_outlive_a_restart(tier: Tier) -> None:
    await tier.store.put(key("a"), tier.page())
    before = await tier.store.stats()
    store = await tier.reopen()
    found = await store.get(key("a"))
    assert found is not None
    assert found.body == b"page"
    after = await store.stats()
    assert (after.pages, after.bytes) == (before.pages, before.bytes)
    assert await store.drop("https://shop.example/") == 1


async def test_writers_and_readers_at_once_stay_within_the_limit(tier: Tier) -> None:
    async def busy(name: int) -> None:
        for turn in range(10):
            await tier.store.put(key(f"{name}-{turn % 4}"), tier.page(os.urandom(5000)))
            found = await tier.store.get(key(f"{name}-{turn % 4}"))
            assert found is None or len(found.body) == 5000
            assert (await tier.store.stats()).bytes <= LIMIT

    await asyncio.gather(*(busy(name) for name in range(8)))


def test_the_coding_refuses_what_it_did_not_write() -> None:
    data = encode(page(0, b"tea" * 1000))
    assert decode(data, 3000).body == b"tea" * 1000
    for wrong in (b"", data[:-1], data[:40], b"sp0" + data[3:], data[:20] + b"x" + data[21:], os.urandom(200)):
        with pytest.raises(UnreadablePage):
            decode(wrong, 3000)
    with pytest.raises(UnreadablePage):
        decode(data, 2999)


def test_bodies_are_compressed_where_that_pays() -> None:
    assert len(encode(page(0, b"tea" * 10_000))) < 1000
    noise = os.urandom(10_000)
    assert 10_000 < len(encode(page(0, noise))) < 10_400


class TestDisk:
    """Files get damaged, folders go away."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[DiskPages]:
        async with running(DiskPages(tmp_path, limit_bytes=LIMIT, max_page_bytes=MAX_PAGE)) as store:
            yield store

    async def test_a_damaged_file_is_dropped(self, store: DiskPages, tmp_path: Path) -> None:
        await store.put(key("a"), page(time.time()))
        (path,) = tmp_path.glob("*/*")
        path.write_bytes(path.read_bytes()[:-3])
        with capture_logs() as logs:
            assert await store.get(key("a")) is None
        assert [each["event"] for each in logs] == ["cache.unreadable"]
        assert not path.exists()
        assert (await store.stats()).pages == 0

    async def test_a_file_that_somebody_removed_is_a_miss(self, store: DiskPages, tmp_path: Path) -> None:
        await store.put(key("a"), page(time.time()))
        (path,) = tmp_path.glob("*/*")
        path.unlink()
        assert await store.get(key("a")) is None
        assert (await store.stats()).bytes == 0

    async def test_half_written_files_are_removed_at_the_start(self, store: DiskPages, tmp_path: Path) -> None:
        await store.put(key("a"), page(time.time()))
        (path,) = tmp_path.glob("*/*")
        part = path.with_name(path.name + ".part")
        part.write_bytes(b"half")
        stray = path.with_name("stray")
        stray.write_bytes(b"?")
        async with running(DiskPages(tmp_path, limit_bytes=LIMIT, max_page_bytes=MAX_PAGE)) as again:
            assert not part.exists()
            assert not stray.exists()
            assert await again.get(key("a")) is not None

    async def test_a_smaller_limit_counts_from_the_start(self, store: DiskPages, tmp_path: Path) -> None:
        for number in range(4):
            await store.put(key(str(number)), page(time.time(), os.urandom(10_000)))
            os.utime(next(tmp_path.glob(f"*/*-{url_digest(str(number))}")), (number, number))
        async with running(DiskPages(tmp_path, limit_bytes=25_000, max_page_bytes=MAX_PAGE)) as again:
            assert [await again.get(key(str(number))) is not None for number in range(4)] == [False, False, True, True]

    async def test_a_folder_that_cannot_be_written_is_a_miss_and_told_once(self, tmp_path: Path) -> None:
        (tmp_path / "pages").write_text("a file where the folder should be")
        async with running(DiskPages(tmp_path / "pages", limit_bytes=LIMIT, max_page_bytes=MAX_PAGE)) as store:
            with capture_logs() as logs:
                for _ in range(3):
                    await store.put(key("a"), page(time.time()))
                    assert await store.get(key("a")) is None
        assert [each["event"] for each in logs] == ["cache.away"]


class TestRedis:
    """Servers restart, stand still, and lose what they held."""

    async def test_claims_are_one_callers_at_a_time(self, redis_url: str) -> None:
        async with running(redis_pages(redis_url)) as one, running(redis_pages(redis_url)) as other:
            assert await one.claim("a", 3600)
            assert not await other.claim("a", 3600)
            assert await other.claim("b", 3600)
            await other.release("a")
            assert not await other.claim("a", 3600)
            await one.release("a")
            assert await other.claim("a", 3600)

    async def test_a_server_that_is_away_is_a_miss_at_once(self, own_valkey: ValkeyServer) -> None:
        back = asyncio.Event()
        with capture_logs() as logs:
            async with running(redis_pages(own_valkey.url, on_return=back.set)) as store:
                await store.put(key("a"), page(time.time()))
                own_valkey.stop()
                async with asyncio.timeout(PATIENCE):  # one call that waits for an answer takes as long
                    for _ in range(20):
                        assert await store.get(key("a")) is None
                        await store.put(key("a"), page(time.time()))
                        assert await store.claim("a", 1)
                        await store.release("a")
                with pytest.raises(Unavailable):
                    await store.drop_all()
                with pytest.raises(Unavailable):
                    await store.stats()
                own_valkey.start()
                await asyncio.wait_for(back.wait(), PATIENCE)
                await store.put(key("b"), page(time.time()))
                assert await store.get(key("b")) is not None
        assert [each["event"] for each in logs] == ["cache.away", "cache.back"]

    async def test_a_server_that_stands_still_costs_a_moment_once(
        self, own_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("scrapeyard.engines.cache.shared.REST_SECONDS", PATIENCE)
        asked: list[PageKey] = []

        class Counted(RedisPages):
            async def get(self, key: PageKey) -> CachedPage | None:
                asked.append(key)
                return await super().get(key)

        counted = Counted(own_valkey.url, limit_bytes=LIMIT, max_page_bytes=MAX_PAGE)
        async with running(TimeLimitedPages(counted)) as store:
            await store.put(key("a"), page(time.time()))
            os.kill(own_valkey.pid, signal.SIGSTOP)
            try:
                until(lambda: processes()[own_valkey.pid].state == "T", "the server stands still")
                with capture_logs() as logs:
                    for _ in range(100):
                        assert await store.get(key("a")) is None
            finally:
                os.kill(own_valkey.pid, signal.SIGCONT)
        assert len(asked) == 1, "the others did not wait"
        assert [each["event"] for each in logs] == ["cache.slow"]

    async def test_a_damaged_page_is_dropped(self, redis_url: str, valkey_server: ValkeyServer) -> None:
        async with running(redis_pages(redis_url)) as store:
            await store.put(key("a"), page(time.time()))
            assert valkey_server.command("APPEND", f"scrapeyard:pages:p:{key('a').id}", "x").startswith(b":")
            with capture_logs() as logs:
                assert await store.get(key("a")) is None
            assert [each["event"] for each in logs] == ["cache.unreadable"]
            assert (await store.stats()).pages == 0

    async def test_nothing_is_left_when_all_is_dropped(self, redis_url: str, valkey_server: ValkeyServer) -> None:
        async with running(redis_pages(redis_url, LIMIT * 100)) as store:
            for number in range(1200):
                await store.put(key(str(number), f"https://shop.example/{number}"), page(time.time()))
            assert await store.drop_site("shop.example") == 1200
            await store.put(key("a"), page(time.time()))
            assert await store.drop_all() == 1
            left = valkey_server.command("KEYS", "scrapeyard:pages:*")
            assert left.startswith((b"*1", b"*2")), left
            assert b":bytes" in left
            assert (await store.stats()).bytes == 0

    async def test_expired_pages_make_room(self, redis_url: str) -> None:
        clock = Clock()
        async with running(redis_pages(redis_url, clock=clock)) as store:
            for number in range(4):
                await store.put(key(str(number)), page(clock.now, os.urandom(20_000), 5))
            clock.now += 6
            await store.put(key("new"), page(clock.now, os.urandom(20_000)))
            stats = await store.stats()
            assert (stats.pages, stats.evicted) == (1, 0)
