"""The shared tier, so that no fetch waits for it: reads are limited in time, writes come a moment later."""

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, TypeVar

from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey, PageStore, StoreStats
from scrapeyard.errors import Unavailable
from scrapeyard.telemetry.events import get_log

T = TypeVar("T")
log = get_log("cache")
PATIENCE_SECONDS = 0.05
REST_SECONDS = 1.0
"""After a page that was slow to come, how long nobody asks for one."""
MAX_LEFT_ALONE = 64


class TimeLimitedPages:
    """Wraps a PageStore. A fetch waits at most `seconds` for each step; a slow write goes on by itself."""

    def __init__(self, store: PageStore, seconds: float = PATIENCE_SECONDS) -> None:
        self._store = store
        self._seconds = seconds
        self._rests_until = 0.0
        self._told = False
        self._left_alone: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """As the store."""
        await self._store.start()

    async def stop(self) -> None:
        """Settle, then stop the store."""
        await self.settle()
        await self._store.stop()

    async def settle(self) -> None:
        """Let writes that are under way end, for a second; what is then left is broken off."""
        if self._left_alone:
            await asyncio.wait(self._left_alone, timeout=REST_SECONDS)
        left = list(self._left_alone)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def get(self, key: PageKey) -> CachedPage | None:
        """None also when it takes too long; then everyone gets None for a second."""
        if self._rests():
            return None
        return await self._briefly(self._store.get(key), None, rest=True)

    async def put(self, key: PageKey, page: CachedPage) -> None:
        """Returns when it is kept or takes too long. With too many slow ones under way it is not kept."""
        if len(self._left_alone) < MAX_LEFT_ALONE:
            await self._briefly(self._store.put(key, page), None)

    async def drop(self, url: str) -> int:
        """As the store, however long it takes."""
        return await self._store.drop(url)

    async def drop_soon(self, url: str) -> None:
        """Forget the pages of a URL. Returns when it is done or takes too long; a server that is away is logged."""
        await self._briefly(self._drop_quietly(url), None)

    async def drop_site(self, site: str) -> int:
        """As the store, however long it takes."""
        return await self._store.drop_site(site)

    async def drop_all(self) -> int:
        """As the store, however long it takes."""
        return await self._store.drop_all()

    async def stats(self) -> StoreStats:
        """As the store, however long it takes."""
        return await self._store.stats()

    async def claim(self, name: str, seconds: float) -> bool:
        """True also when it takes too long to know."""
        return self._rests() or await self._briefly(self._store.claim(name, seconds), True, rest=True)

    async def release(self, name: str) -> None:
        """Returns when it is released or takes too long."""
        await self._briefly(self._store.release(name), None)

    async def _drop_quietly(self, url: str) -> None:
        try:
            await self._store.drop(url)
        except Unavailable as error:
            log.warning("cache.not_dropped", error=error.message)

    def _rests(self) -> bool:
        return asyncio.get_running_loop().time() < self._rests_until

    async def _briefly(self, work: Coroutine[Any, Any, T], otherwise: T, *, rest: bool = False) -> T:
        task = asyncio.ensure_future(work)
        self._left_alone.add(task)
        task.add_done_callback(self._end)
        done, _ = await asyncio.wait((task,), timeout=self._seconds)
        if done:
            return task.result()
        if rest:
            self._rest()
        return otherwise

    def _rest(self) -> None:
        self._rests_until = asyncio.get_running_loop().time() + REST_SECONDS
        if not self._told:
            self._told = True
            log.warning("cache.slow", seconds=self._seconds)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._left_alone.discard(task)
        if task.cancelled():
            return
        if error := task.exception():
            log.error("cache.broken", error=repr(error), exc_info=error)
        elif not self._rests():
            self._told = False


FLUSH_SECONDS = 5.0


class WriteBackBuffer:
    """Pages that are not yet in the shared tier, at most `limit_bytes`; beyond it the oldest are not written."""

    def __init__(self, store: PageStore, limit_bytes: int) -> None:
        self._store = store
        self._limit = limit_bytes
        self._waiting: OrderedDict[PageKey, CachedPage] = OrderedDict()
        self._bytes = 0
        self._lost = 0
        self._writer: asyncio.Task[None] | None = None

    def add(self, key: PageKey, page: CachedPage) -> None:
        """Write this page soon. One that waits under the same key is not written."""
        self._take(key)
        self._waiting[key] = page
        self._bytes += page.size
        while self._bytes > self._limit and self._waiting:
            self._lose()
        if self._writer is None and self._waiting:
            self._writer = asyncio.create_task(self._write(), name="cache-behind")

    def drop(self, url: str) -> None:
        """Do not write the pages of this URL."""
        digest = url_digest(url) if self._waiting else ""
        for key in [key for key in self._waiting if key.url == digest]:
            self._take(key)

    def forget(self) -> None:
        """What waits is not written any more: some of it has just been invalidated."""
        self._waiting.clear()
        self._bytes = 0

    async def flush(self) -> None:
        """Returns when all is written, or after five seconds; what is left is then dropped and logged."""
        if (writer := self._writer) is not None:
            await asyncio.wait((writer,), timeout=FLUSH_SECONDS)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        if self._waiting:
            log.warning("cache.unwritten", count=len(self._waiting))
            self.forget()

    async def _write(self) -> None:
        try:
            while self._waiting:
                key = next(iter(self._waiting))
                page = self._waiting[key]
                self._take(key)
                await self._store.put(key, page)
            self._lost = 0
        finally:
            self._writer = None

    def _take(self, key: PageKey) -> None:
        page = self._waiting.pop(key, None)
        self._bytes -= page.size if page is not None else 0

    def _lose(self) -> None:
        self._take(next(iter(self._waiting)))
        self._lost += 1
        if self._lost == 1:
            log.warning("cache.behind", limit_bytes=self._limit)
