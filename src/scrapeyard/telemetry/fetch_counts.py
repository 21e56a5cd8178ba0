"""Fetches and what came with them, counted in plain numbers: each fetch counts, and few ever look."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class _Count:
    """Fetches with the same labels."""

    __slots__ = ("buckets", "seconds")

    def __init__(self, buckets: int) -> None:
        self.buckets = [0] * buckets
        self.seconds = 0.0


class FetchCounts(Collector):
    """Two counters and a histogram, made into Prometheus' families when somebody asks."""

    def __init__(self, prefix: str, bounds: Sequence[float]) -> None:
        """`bounds` of the histogram's buckets in seconds, in order."""
        self._prefix = prefix
        self._bounds = tuple(bounds)
        self._fetches: dict[tuple[str, str, str], _Count] = {}
        self._bytes: dict[str, int] = {}

    def fetched(self, site_class: str, engine: str, status: str, seconds: float) -> None:
        """A fetch has ended."""
        key = (site_class, engine, status)
        count = self._fetches.get(key)
        if count is None:
            count = self._fetches[key] = _Count(len(self._bounds) + 1)
        count.buckets[bisect_left(self._bounds, seconds)] += 1
        count.seconds += seconds

    def received(self, proxy_class: str, size: int) -> None:
        """Bytes have come from the web through a class of proxies; empty for none."""
        if size:
            proxy_class = proxy_class or "direct"
            self._bytes[proxy_class] = self._bytes.get(proxy_class, 0) + size

    def collect(self) -> Iterator[Metric]:
        """The families as they are now."""
        fetches, timers, received = self.families()
        by_engine: dict[str, list[_Count]] = {}
        for labels, count in tuple(self._fetches.items()):
            fetches.add_metric(labels, sum(count.buckets))
            by_engine.setdefault(labels[1], []).append(count)
        for engine, counts in by_engine.items():
            buckets = [sum(column) for column in zip(*(count.buckets for count in counts), strict=True)]
            timers.add_metric([engine], self._sums(buckets), sum(count.seconds for count in counts))
        for proxy_class, size in tuple(self._bytes.items()):
            received.add_metric([proxy_class], size)
        yield from (fetches, timers, received)

    def describe(self) -> Iterator[Metric]:
        """The families without any value."""
        yield from self.families()

    def families(self) -> tuple[CounterMetricFamily, HistogramMetricFamily, CounterMetricFamily]:
        """Empty ones."""
        fetches = CounterMetricFamily(
            f"{self._prefix}fetches",
            "Pages that scripts asked for, by the engine that brought them. `status` is 2xx to 5xx, or why there was "
            "no answer. The engine `cache` counts cache hits.",
            labels=["site_class", "engine", "status"],
        )
        timers = HistogramMetricFamily(
            f"{self._prefix}fetch_duration_seconds",
            "Of one fetch, with waits for the site's turn and every way tried.",
            labels=["engine"],
        )
        received = CounterMetricFamily(
            f"{self._prefix}received_bytes", "Bytes received from the web, on the wire.", labels=["proxy_class"]
        )
        return fetches, timers, received

    def _sums(self, counts: Sequence[int]) -> list[tuple[str, float]]:
        """Each bucket with those below it, as the format wants them."""
        found, total = list[tuple[str, float]](), 0
        for bound, count in zip((*map(str, map(float, self._bounds)), "+Inf"), counts, strict=True):
            total += count
            found.append((bound, total))
        return found
