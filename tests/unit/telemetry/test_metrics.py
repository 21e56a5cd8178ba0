"""A gateway's metrics, read back with the library's own parser."""

from prometheus_client.parser import text_string_to_metric_families

from scrapeyard.telemetry.metrics import GatewayMetrics, SourceReading

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(metrics: GatewayMetrics) -> Samples:
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_each_source_is_told_as_it_stands_now() -> None:
    sources = [
        SourceReading(name="team", stale=False, scrapers=12, checked_at=1700000000.5),
        SourceReading(name='odd "name"\n', stale=True, scrapers=0, checked_at=None),
    ]
    metrics = GatewayMetrics(lambda: sources, lambda: 0)
    seen = read(metrics)
    team, odd = (("source", "team"),), (("source", 'odd "name"\n'),)
    assert seen["scrapeyard_repository_stale", team] == 0
    assert seen["scrapeyard_repository_stale", odd] == 1
    assert seen["scrapeyard_repository_scrapers", team] == 12
    assert seen["scrapeyard_repository_checked_timestamp_seconds", team] == 1700000000.5
    assert ("scrapeyard_repository_checked_timestamp_seconds", odd) not in seen
    sources.pop()
    assert ("scrapeyard_repository_stale", odd) not in read(metrics)


def test_what_happened_is_counted() -> None:
    waiting = 3
    metrics = GatewayMetrics(lambda: (), lambda: waiting)
    metrics.refreshed(well=True)
    metrics.refreshed(well=False)
    metrics.refreshed(well=False)
    metrics.ended("succeeded")
    seen = read(metrics)
    assert seen["scrapeyard_repository_refreshes_total", (("outcome", "done"),)] == 1
    assert seen["scrapeyard_repository_refreshes_total", (("outcome", "failed"),)] == 2
    assert seen["scrapeyard_gateway_runs_ended_total", (("exit_reason", "succeeded"),)] == 1
    assert seen["scrapeyard_gateway_waiting_calls", ()] == 3


def test_two_gateways_in_one_process_count_apart() -> None:
    one, other = GatewayMetrics(lambda: (), lambda: 0), GatewayMetrics(lambda: (), lambda: 0)
    one.ended("succeeded")
    assert ("scrapeyard_gateway_runs_ended_total", (("exit_reason", "succeeded"),)) not in read(other)
