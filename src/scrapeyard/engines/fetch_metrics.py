"""Counts fetches by the class of their site, the engine that brought the page, and its status."""

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from scrapeyard.engines.port import FetchResponse
from scrapeyard.errors import FetchFailed
from scrapeyard.telemetry.metrics import Metrics

OTHER = "other"
_NONE = "none"
"""The engine of a fetch that brought no page."""
_CLASSES = tuple(f"{hundreds}xx" for hundreds in range(10))


class FetchMetrics:
    """`classes` are those of `telemetry.site_classes`; the first that matches counts."""

    def __init__(self, metrics: Metrics, classes: Sequence[str]) -> None:
        self._metrics = metrics
        self._patterns = tuple((site, name) for name, _, site in (each.partition("=") for each in classes))
        self._class_of = lru_cache(maxsize=10_000)(self._find)

    def brought(self, site: str, page: FetchResponse, began: float) -> None:
        """Count a fetch that began at `began` by the performance counter and brought a page."""
        seconds, of_site = time.perf_counter() - began, self._class_of(site) if self._patterns else OTHER
        status = _CLASSES[page.status // 100]
        if page.tried:
            self._metrics.fetched(of_site, page.strategy, status, seconds, page.tried)
        else:
            self._metrics.fetches.fetched(of_site, page.strategy, status, seconds)

    def failed(self, site: str, error: FetchFailed, began: float) -> None:
        """Count one that brought none. `site` is empty if its URL could not be read."""
        tried = error.details.get("tried", ())
        of_site = self._class_of(site) if self._patterns else OTHER
        self._metrics.fetched(of_site, _NONE, error.reason.value, time.perf_counter() - began, tried)

    def _find(self, site: str) -> str:
        return next((name for pattern, name in self._patterns if fnmatchcase(site, pattern)), OTHER)
