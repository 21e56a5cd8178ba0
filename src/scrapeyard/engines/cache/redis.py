"""The shared tier on Redis 7 or Valkey: one value for each page, and indexes that scripts keep beside them.

The size is counted as what is stored, compressed, with half a kilobyte for the indexes of each page. Redis Cluster is
not supported. A server that evicts keys by itself (`maxmemory-policy`) is survived: what is gone is a miss.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from redis.exceptions import ResponseError

from scrapeyard.engines.cache.coding import UnreadablePage, decode, encode
from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey, StoreStats
from scrapeyard.errors import Unavailable
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost
from scrapeyard.redis.keys import Keys
from scrapeyard.redis.outage import Outage
from scrapeyard.redis.scripts import Script
from scrapeyard.telemetry.events import get_log

log = get_log("cache")
ANSWER_SECONDS = 2.0
DROP_BATCH = 500
"""As redis_drop.lua has it."""
IN_THREAD_BYTES = 128 * 1024
"""Larger pages are packed and unpacked in a thread, so that the loop does not stand still."""
_PUT, _DROP, _RELEASE = (
    Script.load("scrapeyard.engines.cache", name) for name in ("redis_put.lua", "redis_drop.lua", "redis_release.lua")
)


class RedisPages:
    """Pages of all workers. `on_return` is called when the server is back after it was away: invalidations may have
    been missed, so a worker gives its memory's `drop_all` here."""

    def __init__(
        self,
        url: str,
        *,
        limit_bytes: int,
        max_page_bytes: int,
        prefix: str = "scrapeyard",
        on_return: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises SettingsInvalid when the URL or the prefix cannot be used."""
        self._keys = Keys(prefix)
        self._on_return = on_return
        outage = Outage(away=lambda error, _: log.warning("cache.away", error=error), back=self._back)
        self._link = CommandLink(Dialer(url), outage)
        self._limit = limit_bytes
        self._max_page = max_page_bytes
        self._clock = clock
        self._token = secrets.token_hex(8)
        self._counts: Counter[str] = Counter()

    async def start(self) -> None:
        """Begins to connect and waits for it, but no longer than two seconds."""
        self._link.start()
        try:
            await self._link.ready(asyncio.get_running_loop().time() + ANSWER_SECONDS)
        except LinkLost:
            return

    async def stop(self) -> None:
        """Close the connection."""
        await self._link.stop()

    async def get(self, key: PageKey) -> CachedPage | None:
        """One round trip."""
        touch: Command = ("ZADD", self._keys.pages_used, "XX", self._now_ms(), key.id)
        try:
            data, _ = await self._link.ask(
                ("GET", self._keys.page(key.id)), touch, within=ANSWER_SECONDS, unheard=self._counted()
            )
        except LinkLost:
            return None
        page = await self._read(key, data) if isinstance(data, bytes) else None
        if page is not None and page.expires_at <= self._clock():
            page = None
        self._counts["misses" if page is None else "hits"] += 1
        return page

    async def put(self, key: PageKey, page: CachedPage) -> None:
        """One round trip."""
        if len(page.body) > self._max_page or page.expires_at <= self._clock():
            return
        large = len(page.body) > IN_THREAD_BYTES
        data = await asyncio.to_thread(encode, page) if large else encode(page)
        await self._store(key, data, page.expires_at)

    async def drop(self, url: str) -> int:
        """In steps of 500 pages."""
        return await self._drop_all_of(f"u:{url_digest(url)}")

    async def drop_site(self, site: str) -> int:
        """In steps of 500 pages."""
        return await self._drop_all_of(f"s:{site}")

    async def drop_all(self) -> int:
        """In steps of 500 pages. What is put meanwhile may stay."""
        return await self._drop_all_of("")

    async def stats(self) -> StoreStats:
        """Counted by all workers since the server holds them."""
        pages, size, counts = await self._sure(
            ("HLEN", self._keys.pages_meta),
            ("GET", self._keys.pages_bytes),
            ("HMGET", self._keys.pages_counts, "hits", "misses", "evicted"),
            unheard=self._counted(),
        )
        hits, misses, evicted = (int(each or 0) for each in counts)
        return StoreStats(
            kind="redis",
            pages=int(pages),
            bytes=int(size or 0),
            limit_bytes=self._limit,
            hits=hits,
            misses=misses,
            evicted=evicted,
        )

    async def claim(self, name: str, seconds: float) -> bool:
        """By a key that ends by itself."""
        command: Command = ("SET", self._keys.page_claim(name), self._token, "NX", "PX", int(seconds * 1000))
        try:
            (reply,) = await self._link.ask(command, within=ANSWER_SECONDS)
        except LinkLost:
            return True
        return reply is not None

    async def release(self, name: str) -> None:
        """Only our own claim."""
        try:
            await self._run(_RELEASE, self._keys.page_claim(name), self._token)
        except LinkLost:
            return

    async def _read(self, key: PageKey, data: bytes) -> CachedPage | None:
        try:
            if len(data) > IN_THREAD_BYTES:
                return await asyncio.to_thread(decode, data, self._max_page)
            return decode(data, self._max_page)
        except UnreadablePage as error:
            log.warning("cache.unreadable", page=key.id, error=str(error))
            await self._store(key, b"", 0)
            return None

    async def _store(self, key: PageKey, data: bytes, expires_at: float) -> None:
        now, ends = self._now_ms(), int(expires_at * 1000)
        words = (self._keys.pages, key.id, key.url, key.site, now, ends, self._limit, data)
        try:
            reply = await self._run(_PUT, *words)
        except LinkLost:
            return
        if isinstance(reply, ResponseError):
            log.warning("cache.refused", error=str(reply)[:200])

    async def _drop_all_of(self, what: str) -> int:
        count = 0
        while True:
            try:
                reply = await self._run(_DROP, self._keys.pages, what)
            except LinkLost as error:
                raise Unavailable(f"the cache's Redis does not answer: {error}") from None
            if isinstance(reply, ResponseError):
                raise Unavailable(f"the cache's Redis refused: {str(reply)[:200]}")
            count += int(reply)
            if int(reply) < DROP_BATCH:
                return count

    def _back(self, _seconds: float) -> None:
        self._on_return()
        log.info("cache.back")

    async def _run(self, script: Script, *words: str | bytes | int) -> Any:
        return await script.run(self._link, *words, within=ANSWER_SECONDS)

    async def _sure(self, *commands: Command, unheard: Sequence[Command] = ()) -> list[Any]:
        try:
            replies = await self._link.ask(*commands, within=ANSWER_SECONDS, unheard=unheard)
        except LinkLost as error:
            raise Unavailable(f"the cache's Redis does not answer: {error}") from None
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise Unavailable(f"the cache's Redis refused: {str(reply)[:200]}")
        return replies

    def _counted(self) -> list[Command]:
        """What was counted since it was last told to the server; it goes along with the next question."""
        told: list[Command] = [("HINCRBY", self._keys.pages_counts, what, n) for what, n in self._counts.items()]
        self._counts.clear()
        return told

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
