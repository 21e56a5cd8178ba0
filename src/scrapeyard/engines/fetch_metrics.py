"""Counts fetches by the class of their site, the engine that brought the page, and its status."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache

from scrapeyard.engines.port import FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.telemetry.metrics import Metrics

OTHER = "other"
_NONE = "none"
"""The engine of a fetch that brought no page."""


class FetchMetrics:
    """`classes` are those of `telemetry.site_classes`; the first that matches counts."""

    def __init__(self, metrics: Metrics, classes: Sequence[str]) -> None:
        self._metrics = metrics
        self._patterns = tuple((site, name) for name, _, site in (each.partition("=") for each in classes))
        self._class_of = lru_cache(maxsize=10_000)(self._find)

    @contextmanager
    def one(self) -> Iterator["_Fetch"]:
        """Count one fetch, which is what the block does. Set what is known of it meanwhile."""
        fetch, began = _Fetch(), time.perf_counter()
        try:
            yield fetch
        except FetchFailed as error:
            tried = error.details.get("tried", ())
            self._metrics.fetched(self._site(fetch), _NONE, error.reason.value, time.perf_counter() - began, tried)
            raise
        page, seconds = fetch.response, time.perf_counter() - began
        self._metrics.fetched(self._site(fetch), page.strategy, f"{page.status // 100}xx", seconds, page.tried)

    def _site(self, fetch: "_Fetch") -> str:
        return self._class_of(fetch.site) if self._patterns else OTHER

    def _find(self, site: str) -> str:
        return next((name for pattern, name in self._patterns if fnmatchcase(site, pattern)), OTHER)


class _Fetch:
    site = ""
    response: FetchResponse
