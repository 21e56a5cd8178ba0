"""The shared tier on Redis 7 or Valkey: one value for each page, and indexes that scripts keep beside them.

The size is counted as what is stored, compressed, with half a kilobyte for the indexes of each page. Redis Cluster is
not supported. A server that evicts keys by itself (`maxmemory-policy`) is survived: what is gone is a miss.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.exceptions import NoScriptError, ResponseError

from scrapeyard.engines.cache.coding import Unreadable, decode, encode
from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey, StoreStats
from scrapeyard.errors import Unavailable
from scrapeyard.redis.connection import Command, CommandLink, Dialer, LinkLost, Outage
from scrapeyard.telemetry.events import get_log

log = get_log("cache")
PREFIX = "scrapeyard:pages"
ANSWER_SECONDS = 2.0
DROP_BATCH = 500
"""As redis_drop.lua has it."""
IN_THREAD_BYTES = 128 * 1024
"""Larger pages are packed and unpacked in a thread, so that the loop does not stand still."""


class _Script:
    """Lua from a file of this folder."""

    def __init__(self, name: str) -> None:
        self.text = Path(__file__).with_name(name).read_text("utf-8")
        self.digest = sha1(self.text.encode()).hexdigest()  # noqa: S324  the name that Redis gives it


class _Away(Outage):
    """Tells that the cache is away, and that it is back."""

    def __init__(self, on_return: Callable[[], object]) -> None:
        super().__init__(log)
        self._on_return = on_return
        self._gone = False

    def down(self, link: object, error: BaseException, retry_seconds: float) -> None:  # noqa: ARG002  as Outage's
        """The link was lost, or could not be made."""
        if not self._gone:
            self._gone = True
            log.warning("cache.away", error=str(error) or type(error).__name__)

    def up(self, link: object) -> None:  # noqa: ARG002  as Outage's
        """The link was made."""
        if self._gone:
            self._gone = False
            self._on_return()
            log.info("cache.back")


class RedisPages:
    """Pages of all workers. `on_return` is called when the server is back after it was away: invalidations may have
    been missed, so a worker gives its memory's `drop_all` here."""

    def __init__(
        self,
        url: str,
        *,
        limit_bytes: int,
        max_page_bytes: int,
        prefix: str = PREFIX,
        on_return: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises SettingsInvalid when the URL cannot be used."""
        self._link = CommandLink(Dialer(url), _Away(on_return))
        self._limit = limit_bytes
        self._max_page = max_page_bytes
        self._prefix = prefix
        self._clock = clock
        self._token = secrets.token_hex(8)
        self._counts: Counter[str] = Counter()
        self._put, self._drop, self._release = map(_Script, ("redis_put.lua", "redis_drop.lua", "redis_release.lua"))

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
        touch: Command = ("ZADD", f"{self._prefix}:used", "XX", self._now_ms(), key.id)
        try:
            data, _ = await self._link.ask(
                ("GET", f"{self._prefix}:p:{key.id}"), touch, within=ANSWER_SECONDS, unheard=self._counted()
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
            ("HLEN", f"{self._prefix}:meta"),
            ("GET", f"{self._prefix}:bytes"),
            ("HMGET", f"{self._prefix}:counts", "hits", "misses", "evicted"),
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
        command: Command = ("SET", self._claim(name), self._token, "NX", "PX", int(seconds * 1000))
        try:
            (reply,) = await self._link.ask(command, within=ANSWER_SECONDS)
        except LinkLost:
            return True
        return reply is not None

    async def release(self, name: str) -> None:
        """Only our own claim."""
        try:
            await self._run(self._release, self._claim(name), self._token)
        except LinkLost:
            return

    async def _read(self, key: PageKey, data: bytes) -> CachedPage | None:
        try:
            if len(data) > IN_THREAD_BYTES:
                return await asyncio.to_thread(decode, data, self._max_page)
            return decode(data, self._max_page)
        except Unreadable as error:
            log.warning("cache.unreadable", page=key.id, error=str(error))
            await self._store(key, b"", 0)
            return None

    async def _store(self, key: PageKey, data: bytes, expires_at: float) -> None:
        now, ends = self._now_ms(), int(expires_at * 1000)
        words = (self._prefix, key.id, key.url, key.site, now, ends, self._limit, data)
        try:
            reply = await self._run(self._put, *words)
        except LinkLost:
            return
        if isinstance(reply, ResponseError):
            log.warning("cache.refused", error=str(reply)[:200])

    async def _drop_all_of(self, what: str) -> int:
        count = 0
        while True:
            try:
                reply = await self._run(self._drop, self._prefix, what)
            except LinkLost as error:
                raise Unavailable(f"the cache's Redis does not answer: {error}") from None
            if isinstance(reply, ResponseError):
                raise Unavailable(f"the cache's Redis refused: {str(reply)[:200]}")
            count += int(reply)
            if int(reply) < DROP_BATCH:
                return count

    async def _run(self, script: _Script, *words: str | bytes | int) -> Any:
        (reply,) = await self._link.ask(("EVALSHA", script.digest, 0, *words), within=ANSWER_SECONDS)
        if isinstance(reply, NoScriptError):
            (reply,) = await self._link.ask(("EVAL", script.text, 0, *words), within=ANSWER_SECONDS)
        return reply

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
        told: list[Command] = [("HINCRBY", f"{self._prefix}:counts", what, n) for what, n in self._counts.items()]
        self._counts.clear()
        return told

    def _claim(self, name: str) -> str:
        return f"{self._prefix}:claim:{name}"

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)
