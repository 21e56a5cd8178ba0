"""Watches the fields of results, and tells when one empties or changes its form.

What is kept of each result is small. It is added to the sketches in the store every few seconds, so that all workers
share them; what a killed worker had not added is lost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import DecodeError, Raw, json

from scrapeyard.background import Background
from scrapeyard.errors import StoreUnavailable, StoreUncertain
from scrapeyard.model.drift import Sight, sights_of
from scrapeyard.store.ports.operations import DriftStore
from scrapeyard.telemetry.events import get_log

log = get_log("drift")
EVERY_SECONDS: Final = 10.0
MOST_KEYS: Final = 1000
"""Scrapers and sites that are kept at once; others are not watched until the next writing."""
MOST_PAGES: Final = 200
"""Pages of one of them; the rest are not looked at until the next writing."""
MAX_RESULT: Final = 256 * 1024
"""Bytes of a result that is looked at."""
_RECORDS: Final = 5
"""Records of a result that is a list."""
_KEPT_SECONDS: Final = 90 * 86_400.0
_HOUR: Final = 3600.0
_Key = tuple[str, str, str]
OnDrift = Callable[[tuple[str, ...]], Awaitable[None]]
"""Called with the fields that have begun to drift."""


class DriftWatch:
    """For one worker."""

    def __init__(self, store: DriftStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._pages: dict[_Key, list[dict[str, Sight]]] = {}
        self._on_drift: dict[_Key, OnDrift] = {}
        self._background = Background()
        self._swept_at = 0.0

    async def start(self) -> None:
        """Write now and then. May be called twice."""
        self._background.start(self._keep_writing, name="drift")

    async def stop(self) -> None:
        """Write what is left. May be called twice."""
        if await self._background.stop():
            await self.flush()

    def note_result(self, scraper: str, version: str, url: str, result: Raw) -> None:
        """Take the result of a scraper; `url` is the first page that it fetched."""
        key = (scraper, host_of(url), version)
        written = bytes(result)
        if len(written) > MAX_RESULT or not self._has_room(key):
            return
        try:
            value = json.decode(written)
        except DecodeError:
            return
        for record in value[:_RECORDS] if isinstance(value, list) else [value]:
            if isinstance(record, dict):
                self._add(key, sights_of(record))

    def note(self, subject: str, version: str, site: str, values: Mapping[str, Any], on_drift: OnDrift) -> None:
        """Take the values of a page that a learned pattern read."""
        key = (subject, site, version)
        if self._has_room(key):
            self._on_drift[key] = on_drift
            self._add(key, sights_of(dict(values)))

    def _has_room(self, key: _Key) -> bool:
        pages = self._pages.get(key)
        return len(self._pages) < MOST_KEYS if pages is None else len(pages) < MOST_PAGES

    def _add(self, key: _Key, page: dict[str, Sight]) -> None:
        if page:
            self._pages.setdefault(key, []).append(page)

    async def _keep_writing(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Add what was seen to the sketches. What the store does not take waits for the next time."""
        now = self._clock()
        try:
            for key in list(self._pages):
                await self._write(key, now)
            if now - self._swept_at > _HOUR:
                self._swept_at = now
                await self._store.forget_before(now - _KEPT_SECONDS)
        except StoreUnavailable as error:
            log.warning("drift.not_written", error=error.message)

    async def _write(self, key: _Key, now: float) -> None:
        subject, site, version = key
        seen, on_drift = self._pages.pop(key), self._on_drift.pop(key, None)
        try:
            begun = await self._store.observe(subject, site, version, seen, now)
        except StoreUncertain:
            raise  # perhaps written: no page counts twice
        except StoreUnavailable:
            self._pages[key] = [*seen, *self._pages.get(key, ())][:MOST_PAGES]
            if on_drift is not None:
                self._on_drift.setdefault(key, on_drift)
            raise
        if begun:
            log.warning("drift.begun", subject=subject, site=site, fields=", ".join(begun))
            if on_drift is not None:
                await on_drift(begun)


def host_of(url: str) -> str:
    """The host of a page; empty if there is none."""
    try:
        return (urlsplit(url).hostname or "")[:253]
    except ValueError:
        return ""
