"""Writing back: pages go to the shared tier a moment later, so that no answer waits for it."""

import asyncio
from collections import OrderedDict

from scrapeyard.engines.cache.port import KeptPage, PageKey, PageStore
from scrapeyard.telemetry.events import get_log

log = get_log("cache")
FLUSH_SECONDS = 5.0


class Behind:
    """Pages that are not yet in the shared tier, at most `limit_bytes`; beyond it the oldest are not written."""

    def __init__(self, store: PageStore, limit_bytes: int) -> None:
        self._store = store
        self._limit = limit_bytes
        self._waiting: OrderedDict[PageKey, KeptPage] = OrderedDict()
        self._bytes = 0
        self._lost = 0
        self._writer: asyncio.Task[None] | None = None

    def add(self, key: PageKey, page: KeptPage) -> None:
        """Write this page soon. One that waits under the same key is not written."""
        self._take(key)
        self._waiting[key] = page
        self._bytes += page.size
        while self._bytes > self._limit and self._waiting:
            self._lose()
        if self._writer is None and self._waiting:
            self._writer = asyncio.create_task(self._write(), name="cache-behind")

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
