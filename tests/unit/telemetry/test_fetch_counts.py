"""Fetches are counted in plain numbers, and read as Prometheus' own counters and histograms would be."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from scrapeyard.telemetry.fetch_counts import FetchCounts

BOUNDS = (0.25, 0.5, 2.0)
LABELS = st.tuples(st.sampled_from(["other", "shop"]), st.sampled_from(["http", "cache"]), st.sampled_from(["2xx"]))
FETCHES = st.lists(st.tuples(LABELS, st.sampled_from([0.0, 0.25, 0.375, 0.5, 1.5, 2.0, 60.0])), max_size=30)
RECEIVED = st.lists(st.tuples(st.sampled_from(["", "residential"]), st.integers(0, 10_000)), max_size=10)


@given(FETCHES, RECEIVED)
def test_they_are_read_as_prometheus_own(
    fetches: list[tuple[tuple[str, str, str], float]], received: list[tuple[str, int]]
) -> None:
    registry, own = CollectorRegistry(), CollectorRegistry()
    counts = FetchCounts("t_", BOUNDS)
    registry.register(counts)
    words = [family.documentation for family in counts.families()]
    counter = Counter("t_fetches", words[0], ["site_class", "engine", "status"], registry=own)
    timer = Histogram("t_fetch_duration_seconds", words[1], ["engine"], buckets=BOUNDS, registry=own)
    size = Counter("t_received_bytes", words[2], ["proxy_class"], registry=own)
    for labels, seconds in fetches:
        counts.fetched(*labels, seconds)
        counter.labels(*labels).inc()
        timer.labels(labels[1]).observe(seconds)
    for proxy_class, more in received:
        counts.received(proxy_class, more)
        if more:
            size.labels(proxy_class or "direct").inc(more)
    assert lines(registry) == lines(own)


def lines(registry: CollectorRegistry) -> list[str]:
    """What is scraped, in one order."""
    return sorted(line for line in generate_latest(registry).decode().splitlines() if "_created" not in line)
