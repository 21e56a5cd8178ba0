"""Metrics of one process in Prometheus' text form. Each process has one `Metrics`, whatever roles it has.

Every label has a bounded set of values: a route is a template, a site its class, a lane one of the first LANES. No
metric carries a URL, the name of a site or the name of a client.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from scrapeyard.model import ExitReason, Outcome, RunStatus, Usage, status_of
from scrapeyard.model.job import ItemOutcome
from scrapeyard.telemetry.cluster import ClusterReading, cluster_families, example_reading
from scrapeyard.telemetry.fetch_counts import FetchCounts

CONTENT_TYPE = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series beside each of ours, which nobody asks for
PREFIX = "scrapeyard_"
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
SHORT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
M = TypeVar("M", bound=MetricWrapperBase)
_STATUS = {RunStatus.SUCCEEDED: "success", RunStatus.FAILED: "error", RunStatus.CANCELLED: "cancelled"}


class SourceReading(Struct, frozen=True, kw_only=True):
    """State of one source of scrapers."""

    name: str
    stale: bool
    scrapers: int
    checked_at: float | None
    """Unix seconds; None, and not exported, before the first check."""


class MetricRow(Struct, frozen=True, kw_only=True):
    """One metric, as the docs list it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    words: str


class Metrics:
    """All metrics of a process. Parts report what happens; `watch_…` names what is read whenever metrics are asked for.

    A part that is watched twice counts once, as the last one given.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._wrapped: list[MetricWrapperBase] = []
        self._gateway()
        self._runs()
        self._web()
        self._backends()
        self._dispatcher()
        self._watched = _Watched(self.registry)
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """All metrics, of CONTENT_TYPE."""
        return generate_latest(self.registry)

    def rows(self) -> list[MetricRow]:
        """Every metric of ours that any role may export, by name."""
        found = [_row(metric) for metric in self._wrapped]
        found += [_family_row(family) for family in self.fetches.families()]
        found += [_family_row(family) for family in self._watched.examples()]
        return sorted(found, key=lambda row: row.name)

    def _gateway(self) -> None:
        self._requests = self._counter(
            "requests", "Requests to the API, by what was answered.", "method", "route", "status"
        )
        self._durations = self._histogram(
            "request_duration_seconds", "Until the answer begins.", SECONDS, "method", "route"
        )
        self._refreshes = self._counter(
            "repository_refreshes",
            "Looks at all sources that somebody asked for, by the API, a hook or a signal.",
            "outcome",
        )
        for outcome in ("done", "failed"):
            self._refreshes.labels(outcome)
        self._ended = self._counter(
            "gateway_runs_ended", "Runs whose end this gateway was told, by exit reason.", "exit_reason"
        )

    def _runs(self) -> None:
        self._processed = self._counter(
            "queue_processed",
            "Attempts at runs and items that ended at this worker; the status is `retry` if another follows.",
            "kind",
            "status",
            "reason",
        )
        self._queue_wait = self._histogram(
            "queue_wait_seconds", "From when a run was queued to when a worker began.", SECONDS
        )
        self._run_seconds = self._histogram("run_duration_seconds", "Wall clock of an attempt.", SECONDS, "kind")
        self._of_attempt = lru_cache(1024)(self._find_attempt)
        self._child_start = self._histogram(
            "child_start_seconds",
            "Until a child had the run; `ahead` says whether it had been forked before.",
            SHORT_SECONDS,
            "ahead",
        )
        self._solver = self._counter("solver_calls", "Pages that the solver was asked for.", "outcome")

    def _web(self) -> None:
        self.fetches = FetchCounts(PREFIX, SECONDS)
        self.registry.register(self.fetches)
        self._blocks = self._counter("blocks", "Answers that were recognised as a block.", "kind")
        self._escalations = self._counter(
            "escalations", "Fetches that needed more than one way, by whether another way helped.", "outcome"
        )

    def _backends(self) -> None:
        self._store = self._histogram(
            "store_seconds", "Of one read or write of the database.", SHORT_SECONDS, "operation"
        )
        self._store_errors = self._counter(
            "store_errors", "Reads and writes that the database did not answer.", "operation"
        )
        self._queue = self._histogram("queue_seconds", "Of one operation of the queue.", SHORT_SECONDS, "operation")
        self._queue_errors = self._counter("queue_errors", "Operations that the queue did not answer.", "operation")

    def _dispatcher(self) -> None:
        self._duty_seconds = self._histogram(
            "dispatcher_duty_seconds", "Of one round of a duty of the leading dispatcher.", SECONDS, "duty"
        )
        self._duty_failures = self._counter("dispatcher_duty_failures", "Rounds of a duty that failed.", "duty")
        self._swept = self._counter("swept", "Runs and jobs of which retention removed something, by kind.", "kind")
        self._sunk = self._counter("sink_records", "Records that sinks took, or refused for good.", "sink", "outcome")
        self._sink_seconds = self._histogram("sink_batch_seconds", "Of one batch that a sink took.", SECONDS, "sink")
        self._events_sent = self._counter("events_sent", "Lifecycle events that Kafka took.")
        self._event_failures = self._counter("event_failures", "Rounds in which lifecycle events could not be sent.")
        self._sink_failures = self._counter("sink_failures", "Batches that a sink did not take.", "sink")
        self._leases = self._counter("leases_lost", "Runs and batches taken from workers that fell silent.", "kind")

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return self._keep(Counter(PREFIX + name, words, labels, registry=self.registry))

    def _histogram(self, name: str, words: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return self._keep(Histogram(PREFIX + name, words, labels, registry=self.registry, buckets=buckets))

    def _keep(self, metric: M) -> M:
        self._wrapped.append(metric)
        return metric

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A gateway has begun to answer a request. `route` is a template."""
        self._requests.labels(method, route, status).inc()
        self._durations.labels(method, route).observe(seconds)

    def refreshed(self, *, well: bool) -> None:
        """Count a refresh of all sources; not `well` if it failed, or the others could not be notified."""
        self._refreshes.labels("done" if well else "failed").inc()

    def ended(self, exit_reason: str) -> None:
        """A gateway was told that a run has ended."""
        self._ended.labels(exit_reason).inc()

    def run_ended(self, outcome: Outcome) -> None:
        """A worker has ended an attempt at a run."""
        timing = outcome.timing
        self._attempt("run", outcome.exit_reason, outcome.usage, again=outcome.retry_after is not None)
        self._queue_wait.observe(timing.queue_ms / 1000)
        if timing.child_start_ms:
            self._child_start.labels("yes" if timing.forked_ahead else "no").observe(timing.child_start_ms / 1000)

    def item_ended(self, outcome: ItemOutcome) -> None:
        """A worker has ended an attempt at an item."""
        self._attempt("item", outcome.exit_reason, outcome.usage, again=outcome.not_before is not None)

    def _attempt(self, kind: str, reason: ExitReason, usage: Usage, *, again: bool) -> None:
        count, timer = self._of_attempt(kind, reason, again)
        count.inc()
        timer.observe(usage.wall_ms / 1000)
        if usage.solver_calls:
            self._solver.labels("solved").inc(usage.solver_successes)
            self._solver.labels("failed").inc(max(0, usage.solver_calls - usage.solver_successes))
            self._watched.solver[0] += usage.solver_calls
            self._watched.solver[1] += usage.solver_successes

    def _find_attempt(self, kind: str, reason: ExitReason, again: bool) -> tuple[Counter, Histogram]:
        status = "retry" if again else _STATUS[status_of(reason)]
        return self._processed.labels(kind, status, reason.value), self._run_seconds.labels(kind)

    def fetched(
        self, site_class: str, engine: str, status: str, seconds: float, tried: Sequence[Mapping[str, object]]
    ) -> None:
        """A fetch has ended. `tried` are the ways before the last, as `explain` shows them."""
        self.fetches.fetched(site_class, engine, status, seconds)
        if tried:
            for each in tried:
                if "kind" in each:
                    self._blocks.labels(each["kind"]).inc()
            self._escalations.labels("helped" if status.endswith("xx") else "in_vain").inc()

    def stored(self, operation: str, seconds: float, *, well: bool) -> None:
        """The database has answered, or not."""
        self._store.labels(operation).observe(seconds)
        if not well:
            self._store_errors.labels(operation).inc()

    def queued(self, operation: str, seconds: float, *, well: bool) -> None:
        """The queue has answered, or not."""
        self._queue.labels(operation).observe(seconds)
        if not well:
            self._queue_errors.labels(operation).inc()

    def duty_done(self, duty: str, seconds: float, *, well: bool) -> None:
        """A duty of the dispatcher had a round."""
        self._duty_seconds.labels(duty).observe(seconds)
        if not well:
            self._duty_failures.labels(duty).inc()

    def swept(self, kinds: Iterable[str]) -> None:
        """Retention has removed these kinds of something."""
        for kind in kinds:
            self._swept.labels(kind).inc()

    def events_sent(self, count: int) -> None:
        """Lifecycle events were sent."""
        self._events_sent.inc(count)

    def events_failed(self) -> None:
        """Lifecycle events could not be sent; they are tried again."""
        self._event_failures.inc()

    def sink_took(self, sink: str, taken: int, refused: int, seconds: float) -> None:
        """A sink took a batch, but for the records that it refused."""
        self._sunk.labels(sink, "delivered").inc(taken)
        self._sunk.labels(sink, "refused").inc(refused)
        self._sink_seconds.labels(sink).observe(seconds)

    def sink_failed(self, sink: str) -> None:
        """A sink did not take a batch."""
        self._sink_failures.labels(sink).inc()

    def lease_lost(self, kind: str) -> None:
        """A run or a batch was taken from a silent worker."""
        self._leases.labels(kind).inc()

    def watch_sources(self, read: Callable[[], Iterable[SourceReading]]) -> None:
        """The sources of scrapers."""
        self._watched.sources = read

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """One of the gauges in GAUGES."""
        self._watched.gauges[name] = read

    def watch_cluster(self, read: Callable[[], ClusterReading | None]) -> None:
        """What the leading dispatcher knows of the whole; None while this process does not lead."""
        self._watched.cluster = read


GAUGES = {
    "gateway_waiting_calls": "Calls that wait for a run to end.",
    "worker_slots": "Slots of this worker.",
    "worker_busy_slots": "Slots of this worker that are in use.",
    "browser_contexts": "Browser contexts open at this worker.",
    "recorder_pending": "Changes of runs that wait to be written to the database.",
    "dispatcher_leads": "1 if this dispatcher leads.",
    "dispatcher_lag_seconds": "Since the leading dispatcher last handed out work; it does so several times a second.",
}
"""Gauges that are read when metrics are asked for, if their part runs in this process."""


class _Watched(Collector):
    """Collected anew each time, so that what is gone leaves no value behind."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sources: Callable[[], Iterable[SourceReading]] = lambda: ()
        self.gauges: dict[str, Callable[[], float]] = {}
        self.cluster: Callable[[], ClusterReading | None] = lambda: None
        self.solver = [0, 0]
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        yield from _source_families(self.sources())
        for name, read in self.gauges.items():
            yield GaugeMetricFamily(PREFIX + name, GAUGES[name], value=read())
        if self.solver[0]:
            yield _solver_rate(self.solver[1] / self.solver[0])
        if (reading := self.cluster()) is not None:
            yield from cluster_families(reading)

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def examples(self) -> Iterator[Metric]:
        yield from _source_families((SourceReading(name="s", stale=False, scrapers=1, checked_at=1.0),))
        yield from (GaugeMetricFamily(PREFIX + name, words, value=0) for name, words in GAUGES.items())
        yield _solver_rate(0.0)
        yield from cluster_families(example_reading())


def _solver_rate(rate: float) -> GaugeMetricFamily:
    words = "Share of the pages asked of the solver that it brought, since this worker began; absent before the first."
    return GaugeMetricFamily("flaresolverr_success_rate", words, value=rate)


def _source_families(sources: Iterable[SourceReading]) -> tuple[GaugeMetricFamily, ...]:
    stale = _of_source("stale", "1 when what is served may be out of date.")
    checked = _of_source("checked_timestamp_seconds", "When the source was last asked and answered.")
    scrapers = _of_source("scrapers", "Versions that the source offers and that can run.")
    for source in sources:
        stale.add_metric([source.name], float(source.stale))
        scrapers.add_metric([source.name], source.scrapers)
        if source.checked_at is not None:
            checked.add_metric([source.name], source.checked_at)
    return stale, checked, scrapers


def _of_source(name: str, words: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}repository_{name}", words, labels=["source"])


def _row(metric: MetricWrapperBase) -> MetricRow:
    (family,) = metric.describe()
    return msgspec.structs.replace(_family_row(family), labels=metric._labelnames)


def _family_row(family: Metric) -> MetricRow:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = tuple(family.samples[0].labels) if family.samples else tuple(getattr(family, "_labelnames", ()))
    return MetricRow(name=name, kind=family.type, labels=labels, words=family.documentation)
