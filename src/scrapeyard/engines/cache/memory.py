"""The near tier: pages in this process, the least recently used going first. Made for one event loop; never waits."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from scrapeyard.engines.cache.identity import url_digest
from scrapeyard.engines.cache.port import CachedPage, PageKey, StoreStats
from scrapeyard.model import Invalidate


class MemoryPages:
    """Pages up to `limit_bytes` together. The methods are those of PageStore, but answer at once."""

    def __init__(self, limit_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._limit = limit_bytes
        self._clock = clock
        self._pages: OrderedDict[str, tuple[PageKey, CachedPage, int]] = OrderedDict()
        self._by_url: dict[str, set[str]] = {}
        self._by_site: dict[str, set[str]] = {}
        self._bytes = self._hits = self._misses = self._evicted = 0

    def get(self, key: PageKey) -> CachedPage | None:
        """A page whose time is not over. None: not here."""
        found = self._pages.get(key.id)
        if found is not None and found[1].expires_at <= self._clock():
            self._remove(key.id)
            found = None
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        self._pages.move_to_end(key.id)
        return found[1]

    def put(self, key: PageKey, page: CachedPage) -> None:
        """Keep a page, unless it alone is larger than the limit, or expired."""
        self._remove(key.id)
        size = page.size
        if size > self._limit or page.expires_at <= self._clock():
            return
        while self._bytes + size > self._limit:
            self._remove(next(iter(self._pages)))
            self._evicted += 1
        self._pages[key.id] = (key, page, size)
        self._by_url.setdefault(key.url, set()).add(key.id)
        self._by_site.setdefault(key.site, set()).add(key.id)
        self._bytes += size

    def offer(self, key: PageKey, page: CachedPage) -> None:
        """Keep a page that comes from the shared tier, unless a newer one is here."""
        held = self._pages.get(key.id)
        if held is None or held[1].fetched_at <= page.fetched_at:
            self.put(key, page)

    def drop(self, url: str) -> int:
        """Forget every page asked for by this URL."""
        return self._remove_all(self._by_url.get(url_digest(url), ()))

    def drop_site(self, site: str) -> int:
        """Forget every page of a site."""
        return self._remove_all(self._by_site.get(site, ()))

    def drop_all(self) -> int:
        """Forget everything."""
        return self._remove_all(self._pages)

    def forget(self, signal: Invalidate) -> int:
        """Forget what a signal names."""
        if signal.url:
            return self.drop(signal.url)
        return self.drop_site(signal.site) if signal.site else self.drop_all()

    def stats(self) -> StoreStats:
        """How it stands."""
        return StoreStats(
            kind="memory",
            pages=len(self._pages),
            bytes=self._bytes,
            limit_bytes=self._limit,
            hits=self._hits,
            misses=self._misses,
            evicted=self._evicted,
        )

    def _remove_all(self, ids: Iterable[str]) -> int:
        found = list(ids)
        for each in found:
            self._remove(each)
        return len(found)

    def _remove(self, page_id: str) -> None:
        held = self._pages.pop(page_id, None)
        if held is None:
            return
        key, _, size = held
        self._bytes -= size
        for index, name in ((self._by_url, key.url), (self._by_site, key.site)):
            index[name].discard(page_id)
            if not index[name]:
                del index[name]
