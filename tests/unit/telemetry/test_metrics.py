"""Metrics of a process, read back with the library's own parser."""

from prometheus_client.parser import text_string_to_metric_families

from scrapeyard.model import ExitReason, Outcome, Timing, Usage
from scrapeyard.model.job import ItemOutcome
from scrapeyard.telemetry.cluster import LANES, OTHER, ClusterReading, example_reading
from scrapeyard.telemetry.metrics import Metrics, SourceReading

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(metrics: Metrics) -> Samples:
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
    metrics = Metrics()
    metrics.watch_sources(lambda: sources)
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
    metrics = Metrics()
    metrics.watch("gateway_waiting_calls", lambda: 3)
    metrics.refreshed(well=True)
    metrics.refreshed(well=False)
    metrics.refreshed(well=False)
    metrics.ended("succeeded")
    seen = read(metrics)
    assert seen["scrapeyard_repository_refreshes_total", (("outcome", "done"),)] == 1
    assert seen["scrapeyard_repository_refreshes_total", (("outcome", "failed"),)] == 2
    assert seen["scrapeyard_gateway_runs_ended_total", (("exit_reason", "succeeded"),)] == 1
    assert seen["scrapeyard_gateway_waiting_calls", ()] == 3
    assert seen["process_resident_memory_bytes", ()] > 0
    assert seen["process_open_fds", ()] > 0


def test_two_processes_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.ended("succeeded")
    assert ("scrapeyard_gateway_runs_ended_total", (("exit_reason", "succeeded"),)) not in read(other)


def test_attempts_are_told_by_how_they_end() -> None:
    metrics = Metrics()
    ended = Outcome(run_id="r", attempt=1, exit_reason=ExitReason.TIMEOUT, retry_after=5.0, timing=Timing(queue_ms=250))
    metrics.run_ended(ended)
    item = ItemOutcome(seq=1, attempt=1, exit_reason=ExitReason.GONE, started_at=0.0, finished_at=1.0)
    metrics.item_ended(item)
    seen = read(metrics)
    name = "scrapeyard_queue_processed_total"
    assert seen[name, (("kind", "run"), ("reason", "timeout"), ("status", "retry"))] == 1
    assert seen[name, (("kind", "item"), ("reason", "gone"), ("status", "success"))] == 1
    assert seen["scrapeyard_queue_wait_seconds_sum", ()] == 0.25


def test_the_solver_has_a_rate_once_it_was_asked() -> None:
    metrics = Metrics()
    assert ("flaresolverr_success_rate", ()) not in read(metrics)
    used = Usage(solver_calls=4, solver_successes=3)
    metrics.run_ended(Outcome(run_id="r", attempt=1, exit_reason=ExitReason.SUCCEEDED, usage=used))
    seen = read(metrics)
    assert seen["flaresolverr_success_rate", ()] == 0.75
    assert seen["scrapeyard_solver_calls_total", (("outcome", "failed"),)] == 1


def test_ways_that_were_tried_are_blocks_and_an_escalation() -> None:
    metrics = Metrics()
    tried = ({"way": "plain", "kind": "captcha", "status": 403}, {"way": "proxy", "reason": "fetch_proxy"})
    metrics.fetched("other", "browser", "2xx", 1.0, tried)
    metrics.fetched("other", "none", "fetch_blocked", 1.0, tried[:1])
    seen = read(metrics)
    assert seen["scrapeyard_blocks_total", (("kind", "captcha"),)] == 2
    assert seen["scrapeyard_escalations_total", (("outcome", "helped"),)] == 1
    assert seen["scrapeyard_escalations_total", (("outcome", "in_vain"),)] == 1


def test_the_cluster_is_told_by_the_leader_alone() -> None:
    metrics, leads = Metrics(), True
    metrics.watch_cluster(lambda: example_reading() if leads else None)
    key = ("scrapeyard_queue_size", (("lane", "default"), ("priority", "high")))
    assert key in read(metrics)
    leads = False
    assert key not in read(metrics)


def test_lanes_beyond_the_limit_are_one() -> None:
    many = {(f"lane{number:03}", "high"): 2 for number in range(LANES + 5)}
    reading = ClusterReading(**{**{name: getattr(example_reading(), name) for name in ClusterReading.__struct_fields__},
                                "queue": many, "oldest_seconds": {}, "work_seconds": {}})  # fmt: skip
    metrics = Metrics()
    metrics.watch_cluster(lambda: reading)
    sizes = {dict(labels)["lane"]: value for (name, labels), value in read(metrics).items() if name.endswith("_size")}
    assert len(sizes) == LANES + 1
    assert sizes[OTHER] == 10
