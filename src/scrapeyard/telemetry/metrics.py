"""Metrics of one gateway in Prometheus' text form. Each gateway has a registry of its own."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST


class SourceReading(Struct, frozen=True, kw_only=True):
    """State of one source of scrapers."""

    name: str
    stale: bool
    scrapers: int
    checked_at: float | None
    """Unix seconds; None, and not exported, before the first check."""


class GatewayMetrics:
    """Metrics of a gateway. `sources` and `waiting` are called whenever the metrics are read."""

    def __init__(self, sources: Callable[[], Iterable[SourceReading]], waiting: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Sources(sources))
        self._refreshes = Counter(
            "scrapeyard_repository_refreshes",
            "Looks at all sources that somebody asked for, by the API, a hook or a signal.",
            ["outcome"],
            registry=self._registry,
        )
        for outcome in ("done", "failed"):
            self._refreshes.labels(outcome)
        self._ended = Counter(
            "scrapeyard_gateway_runs_ended",
            "Runs whose end this gateway was told, by exit reason.",
            ["exit_reason"],
            registry=self._registry,
        )
        calls = Gauge("scrapeyard_gateway_waiting_calls", "Calls that wait for a run to end.", registry=self._registry)
        calls.set_function(waiting)

    def refreshed(self, *, well: bool) -> None:
        """Count a refresh of all sources; not `well` if it failed, or the others could not be notified."""
        self._refreshes.labels("done" if well else "failed").inc()

    def ended(self, exit_reason: str) -> None:
        """A run has ended."""
        self._ended.labels(exit_reason).inc()

    def text(self) -> bytes:
        """All metrics, of CONTENT_TYPE."""
        return generate_latest(self._registry)


class _Sources(Collector):
    """Collected anew each time, so that a removed source leaves no value behind."""

    def __init__(self, read: Callable[[], Iterable[SourceReading]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        stale = _gauge("stale", "1 when what is served may be out of date.")
        checked = _gauge("checked_timestamp_seconds", "When the source was last asked and answered.")
        scrapers = _gauge("scrapers", "Versions that the source offers and that can run.")
        for source in self._read():
            stale.add_metric([source.name], float(source.stale))
            scrapers.add_metric([source.name], source.scrapers)
            if source.checked_at is not None:
                checked.add_metric([source.name], source.checked_at)
        yield from (stale, checked, scrapers)


def _gauge(name: str, words: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"scrapeyard_repository_{name}", words, labels=["source"])
